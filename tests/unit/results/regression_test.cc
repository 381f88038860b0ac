#include "results/stats/regression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockbench::results {
namespace {

using testing::HasSubstr;

Difference shown(double a, double b, Finding finding = Finding::worse) {
  Difference difference;
  difference.figure = "acquire.p99";
  difference.a = a;
  difference.b = b;
  difference.finding = finding;
  return difference;
}

bool applies(std::string_view text, const Difference& difference) {
  return is_regression(parse_regression(text).value(), difference);
}

TEST(Regression, ReadsSharesAndUnits) {
  const auto share = parse_regression(" acquire.p99 > + 10 % ").value();
  EXPECT_EQ(share.figure, "acquire.p99");
  EXPECT_TRUE(share.more && share.is_share);
  EXPECT_DOUBLE_EQ(share.bound, 0.1);
  const auto absolute = parse_regression("handoff.p50>+200us").value();
  EXPECT_FALSE(absolute.is_share);
  EXPECT_DOUBLE_EQ(absolute.bound, 200e-6);
  EXPECT_FALSE(parse_regression("sections_per_second<-5%").value().more);
  EXPECT_EQ(parse_regression("audit.lost_updates>+0").value().bound, 0);
}

TEST(Regression, AppliesBeyondTheBoundOnly) {
  EXPECT_TRUE(applies("acquire.p99>+10%", shown(1, 1.11)));
  EXPECT_FALSE(applies("acquire.p99>+10%", shown(1, 1.09)));
  EXPECT_FALSE(applies("acquire.p99>+10%", shown(1, 0.5)));
  EXPECT_TRUE(applies("acquire.p99<-10%", shown(1, 0.89, Finding::better)));
  EXPECT_FALSE(applies("acquire.p99<-10%", shown(1, 0.91, Finding::better)));
  EXPECT_TRUE(applies("acquire.p99>+1ms", shown(0.001, 0.0021)));
  EXPECT_FALSE(applies("acquire.p99>+1ms", shown(0.001, 0.0019)));
}

TEST(Regression, AppliesOnlyToWhatIsShown) {
  EXPECT_FALSE(applies("acquire.p99>+10%", shown(1, 5, Finding::none_shown)));
}

TEST(Regression, AppliesOnlyToItsFigure) { EXPECT_FALSE(applies("acquire.p50>+10%", shown(1, 5))); }

TEST(Regression, FromNothingAnythingIsMore) {
  EXPECT_TRUE(applies("acquire.p99>+500%", shown(0, 1)));
}

TEST(Regression, MistakesAreNamedInOneLine) {
  const auto error = [](std::string_view text) {
    const auto parsed = parse_regression(text);
    return parsed ? "no error" : parsed.error();
  };
  EXPECT_THAT(error("acquire.p9>+10%"), HasSubstr("no such figure 'acquire.p9'"));
  for (const char* text : {"", ">", "<", "acquire.p99", "acquire.p99>10%", "acquire.p99<+10%",
                           "acquire.p99>-10%", "acquire.p99>+-10%", "acquire.p99==1"}) {
    EXPECT_THAT(error(text), HasSubstr("wanted is FIGURE>+NUMBER")) << text;
  }
  EXPECT_THAT(error("acquire.p99>+"), HasSubstr("is not a number"));
  EXPECT_THAT(error("acquire.p99>+%"), HasSubstr("is not a number"));
  EXPECT_THAT(error("acquire.p99>+ten%"), HasSubstr("is not a number"));
  EXPECT_THAT(error("acquire.p99>+10parsec"), HasSubstr("no such unit"));
  EXPECT_THAT(error("acquire.p99>+1e999%"), HasSubstr("is not a number"));
  EXPECT_THAT(error(std::string(1000, 'x')), HasSubstr("longer than"));
  EXPECT_THAT(error("acquire.p99\n>+10%"), testing::Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace lockbench::results
