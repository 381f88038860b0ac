#include <gmock/gmock.h>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Choose, MeasuresWhatQualifiesUnderTheLoadThatWasAskedFor) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"choose", "--stores", "redis,postgres", "--fair", "--clients", "8",
                          "--keys", "2", "--rate", "200", "--work-time-p50", "1ms", "--measure",
                          "--measure-time", "12s", "--format", "json", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json answer = Json::parse(outcome.out);
  EXPECT_THAT(answer.at("ranked_by").at("measured_in").get<std::string>(),
              testing::StartsWith("r.json"));
  EXPECT_TRUE(answer.at("ranked_by").at("differences").empty());
  const Json result = read_result(scratch / "r.json");
  for (const Json& one : answer.at("qualify")) {
    const std::string name = one.at("strategy");
    const Json& run = run_of(result, name);
    EXPECT_EQ(run.at("load").at("clients"), 8) << name;
    EXPECT_EQ(run.at("load").at("rate"), 200) << name;
  }
  EXPECT_GE(answer.at("qualify").size(), 2U);
}

TEST(Choose, WithoutARequirementSaysWhatIsWanted) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"choose"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(lines_of(outcome.err).size(), 1U);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--stores"), HasSubstr("--work-time-p99")));
}

}  // namespace
}  // namespace lockbench::test
