#include "results/stats/regression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "results/stats/comparison.h"

namespace lockbench::results {
namespace {

using testing::HasSubstr;

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

TEST(Regression, ABoundIsAChangeOfItsFigure) {
  const auto bound = [](std::string_view text, const Difference& difference) {
    return bound_of(parse_regression(text).value(), difference);
  };
  const Difference share{.a = 0.002, .relative = true};
  EXPECT_DOUBLE_EQ(bound("acquire.p99>+10%", share), 0.1);
  EXPECT_DOUBLE_EQ(bound("acquire.p99<-10%", share), -0.1);
  EXPECT_DOUBLE_EQ(bound("acquire.p99>+1ms", share), 0.5);
  const Difference number{.a = -4, .relative = false};
  EXPECT_DOUBLE_EQ(bound("audit.lost_updates>+3", number), 3);
  EXPECT_DOUBLE_EQ(bound("audit.lost_updates>+50%", number), 2);
  EXPECT_EQ(bound("audit.lost_updates>+500%", {.a = 0}), 0) << "from nothing, anything is more";
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
