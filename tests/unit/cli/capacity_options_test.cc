#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::HasSubstr;

/// What the command itself refuses, before anything starts.
std::string refusal_of(std::vector<std::string> args) {
  args.insert(args.begin(), "capacity");
  return ran(args).err;
}

TEST(CapacityOptions, SayWhatIsWrong) {
  EXPECT_THAT(error_of<CapacityOptions>({"--slo", "acquire.p99>20ms"}),
              HasSubstr("this objective improves as acquire.p99 gets worse; use <"));
  EXPECT_THAT(error_of<CapacityOptions>({"--slo", "fairness.jain<=0.5"}), HasSubstr("use >"));
  EXPECT_THAT(error_of<CapacityOptions>({"--planned-rate", "0"}),
              HasSubstr("\"0\" is not a number from"));
  EXPECT_THAT(error_of<CapacityOptions>({"--rate", "5"}), HasSubstr("--rate"));
}

TEST(CapacityOptions, NothingStartsWithoutStrategyAndObjective) {
  EXPECT_THAT(refusal_of({"--slo", "acquire.p99<20ms"}), HasSubstr("needs a strategy"));
  EXPECT_THAT(refusal_of({"redis-queue"}), HasSubstr("needs an objective: --slo"));
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"redis-queue", "--slo", "acquire.p99<20ms"});
    return refusal_of(more);
  };
  EXPECT_THAT(with({"redis-qeue"}), HasSubstr("redis-qeue"));
}

}  // namespace
}  // namespace lockbench::cli
