#include "results/stats/threshold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "results/file/json.h"
#include "results/stats/compared_figures.h"
#include "results/stats/comparison.h"
#include "results/stats/figures.h"
#include "results/stats/regression.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(std::string_view text) {
  const auto parsed = parse_threshold(text);
  return parsed ? "no error" : parsed.error();
}

bool kept(std::string_view text) {
  const auto parsed = parse_threshold(text);
  EXPECT_TRUE(parsed.has_value()) << parsed.error();
  return parsed && evaluate(*parsed, full_run()).kept();
}

TEST(Threshold, ReadsFiguresOperatorsAndUnits) {
  const auto threshold = parse_threshold(" acquire.p99 <= 5 ms ");
  ASSERT_TRUE(threshold.has_value()) << threshold.error();
  EXPECT_EQ(threshold->figure, "acquire.p99");
  EXPECT_EQ(threshold->comparison, Comparison::less_equal);
  EXPECT_DOUBLE_EQ(threshold->bound, 0.005);
  EXPECT_DOUBLE_EQ(parse_threshold("hold.max<250ns")->bound, 250e-9);
  EXPECT_DOUBLE_EQ(parse_threshold("hold.max<83us")->bound, 83e-6);
  EXPECT_DOUBLE_EQ(parse_threshold("hold.max<1.5m")->bound, 90);
  EXPECT_DOUBLE_EQ(parse_threshold("hold.max<2h")->bound, 7200);
  EXPECT_DOUBLE_EQ(parse_threshold("sections_per_second>1e3")->bound, 1000);
  EXPECT_DOUBLE_EQ(parse_threshold("fairness.jain>=.9")->bound, 0.9);
}

TEST(Threshold, ComparesTheWayItSays) {
  EXPECT_TRUE(kept("audit.lost_updates==12"));
  EXPECT_FALSE(kept("audit.lost_updates==0"));
  EXPECT_TRUE(kept("audit.lost_updates!=0"));
  EXPECT_FALSE(kept("audit.lost_updates!=12"));
  EXPECT_FALSE(kept("audit.lost_updates<12"));
  EXPECT_TRUE(kept("audit.lost_updates<=12"));
  EXPECT_FALSE(kept("audit.lost_updates>12"));
  EXPECT_TRUE(kept("audit.lost_updates>=12"));
  EXPECT_TRUE(kept("acquire.p99<5ms"));
  EXPECT_FALSE(kept("acquire.p99<1ms"));
  EXPECT_TRUE(kept("sections_per_second>1000"));
}

TEST(Threshold, TellsWhatWasMeasured) {
  const Threshold threshold = *parse_threshold("acquire.p99<1ms");
  const ThresholdOutcome full = evaluate(threshold, full_run());
  EXPECT_EQ(full.measured, 0.00142);
  EXPECT_FALSE(full.kept());
  EXPECT_EQ(full.reason, "acquire.p99 is 1.42 ms");
  const ThresholdOutcome none = evaluate(threshold, simple_run("none"));
  EXPECT_FALSE(none.measured.has_value());
  EXPECT_FALSE(none.kept()) << "what was not measured";
  EXPECT_TRUE(none.is_unknown);
  EXPECT_EQ(none.reason, "acquire.p99 was not measured");
}

TEST(Threshold, UnknownFiguresNameCloseOnes) {
  EXPECT_THAT(error_of("aquire.p99<5ms"),
              AllOf(HasSubstr("'aquire.p99'"), HasSubstr("acquire.p99")));
  EXPECT_THAT(error_of("lost_updates==0"), HasSubstr("audit.lost_updates"));
  EXPECT_THAT(error_of("sections_per_sec>1"), HasSubstr("sections_per_second"));
  EXPECT_THAT(error_of("<1"), HasSubstr("no such figure ''"));
  EXPECT_THAT(error_of("renewal==0"), HasSubstr("no such figure"));
  EXPECT_THAT(error_of("strategy==0"), HasSubstr("no such figure"));
  EXPECT_THAT(error_of("generator.valid==1"), HasSubstr("no such figure"));
}

TEST(Threshold, ErrorsNameTheCulpritAndWhatIsAllowed) {
  EXPECT_THAT(error_of("acquire.p99"), HasSubstr("< <= > >= == !="));
  EXPECT_THAT(error_of("acquire.p99=5"), HasSubstr("< <= > >= == !="));
  EXPECT_THAT(error_of("acquire.p99<"), HasSubstr("'' is not a number"));
  EXPECT_THAT(error_of("acquire.p99<fast"), HasSubstr("'fast' is not a number"));
  EXPECT_THAT(error_of("acquire.p99<inf"), HasSubstr("'inf' is not a number"));
  EXPECT_THAT(error_of("acquire.p99<nan"), HasSubstr("'nan' is not a number"));
  EXPECT_THAT(error_of("acquire.p99<5min"),
              AllOf(HasSubstr("'min'"), HasSubstr("ns, us, ms, s, m, h")));
  EXPECT_THAT(error_of("acquire.p99<5ms<6ms"), HasSubstr("no such unit"));
  EXPECT_THAT(error_of(""), HasSubstr("operator"));
  EXPECT_THAT(error_of(std::string(100000, 'a') + "<1"), HasSubstr("longer than"));
}

TEST(Figures, AreTheNumbersOfTheFile) {
  Result result = full_result();
  const nlohmann::json run = nlohmann::json::parse(to_json(result)).at("runs").at(0);
  std::map<std::string, double> expected;
  const nlohmann::json leaves = run.flatten();
  for (const auto& [at, value] : leaves.items()) {
    std::string path = at;
    std::replace(path.begin(), path.end(), '/', '.');
    const auto parent = nlohmann::json::json_pointer(at).parent_pointer();
    const bool in_list =
        path.find_first_of("0123456789") != std::string::npos && run.at(parent).is_array();
    const bool below_list =
        path.starts_with(".series") || path.starts_with(".faults") || path.starts_with(".ranks") ||
        path.starts_with(".quorum.votes") || path.starts_with(".commands.") ||
        path.starts_with(".quorum.node_seconds") || path.find("buckets") != std::string::npos;
    if (value.is_number() && !in_list && !below_list) {
      expected[path.substr(1)] = value.get<double>();
    }
  }
  std::map<std::string, double> found;
  for (const Figure& candidate : figures(result.runs[0])) {
    ASSERT_TRUE(candidate.value.has_value()) << candidate.path;
    found[candidate.path] = *candidate.value;
  }
  EXPECT_EQ(found, expected);
  EXPECT_GT(found.size(), 100U);
}

TEST(Figures, OfRenewalAreThereWithoutValuesWhereNothingIsRenewed) {
  EXPECT_EQ(figure(full_run(), "renewal.lost"), 1);
  EXPECT_EQ(figure(full_run(), "renewal.margin.p99"), 0.00142);
  EXPECT_EQ(figure(simple_run("none"), "renewal.lost"), std::nullopt);
  EXPECT_EQ(figure(simple_run("none"), "renewal.margin.histogram.overflow"), std::nullopt);
  EXPECT_EQ(figure(full_run(), "quorum.validity.p99"), 0.00142);
  EXPECT_EQ(figure(simple_run("none"), "quorum.split_votes"), std::nullopt);
  EXPECT_TRUE(kept("renewal.lost==1"));
  EXPECT_TRUE(kept("replication.refusals<=3"));
  EXPECT_TRUE(kept("audit.stale_writes_rejected>=2"));
}

TEST(Figures, AnUnknownPathIsAProgrammingError) {
  EXPECT_THROW(figure(results::Run{}, "acquire.p98"), std::invalid_argument);
}

TEST(Threshold, ALowerBoundCannotShowThatAFigureIsSmall) {
  results::Run run = full_run();
  run.acquire.p99 = 0.002;
  run.acquire.at_least = {"p99"};
  const auto outcome = [&](const char* text) { return evaluate(*parse_threshold(text), run); };
  EXPECT_FALSE(outcome("acquire.p99<5ms").kept());
  EXPECT_EQ(outcome("acquire.p99<5ms").reason, "acquire.p99 is at least 2 ms");
  EXPECT_TRUE(outcome("acquire.p99<5ms").is_unknown) << "nor that it is large";
  EXPECT_FALSE(outcome("acquire.p99<1ms").is_unknown);
  EXPECT_TRUE(outcome("acquire.p99>1ms").kept());
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

Good direction(const std::string& path) { return compared_figure(path).good; }

TEST(ComparedFigure, KnowsWhichWayIsBetter) {
  for (const char* path : {"sections_per_second", "sections", "outcomes.acquired",
                           "renewal.margin.p50", "quorum.validity.min", "fairness.jain"}) {
    EXPECT_EQ(direction(path), Good::higher) << path;
  }
  for (const char* path : {"acquire.p999", "fairness.longest_wait_seconds", "renewal.slip.max",
                           "replication.wait.p99", "commands_per_section"}) {
    EXPECT_EQ(direction(path), Good::lower) << path;
  }
  for (const char* path : {"acquire.count", "renewal.margin.count", "acquire.histogram.overflow",
                           "generator.cpu_share", "wait.backoff_seconds"}) {
    EXPECT_EQ(direction(path), Good::unknown) << path;
  }
}

TEST(ComparedFigure, KnowsTimes) {
  EXPECT_EQ(compared_figure("renewal.margin.p50").unit, Unit::seconds);
  EXPECT_EQ(compared_figure("fairness.longest_wait_seconds").unit, Unit::seconds);
  EXPECT_EQ(compared_figure("sections").unit, Unit::count);
}

}  // namespace
}  // namespace lockbench::results
