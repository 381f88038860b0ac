#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/support/documents.h"

namespace lockbench::test {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

Outcome simulate(const Scratch& scratch, Words arguments) {
  arguments.insert(arguments.begin(), "simulate");
  return lockbench(scratch, arguments);
}

TEST(SimulateCommand, FiftySeedsGiveTheSameResultAgainWhateverTheJobs) {
  const Scratch scratch;
  scratch.write("faults", "failover 1/m 1s\nclient-kill 1/m 1s\npartition:0.3 1/m 2s\n");
  std::vector<Json> results;
  for (const char* const jobs : {"1", "2"}) {
    const Outcome outcome =
        simulate(scratch, {"redis-queue", "redlock",    "--seeds",   "50",       "--duration",
                           "10s",         "--hold",     "20ms",      "--faults", "faults",
                           "--pauses",    "1%@exp(5s)", "--regions", "eu",       "--ttl",
                           "2s",          "--jobs",     jobs,        "--out",    "r.json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    results.push_back(read_result(scratch / "r.json").at("simulation"));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0][0].at("seeds"), 50);
  EXPECT_GT(results[0][0].at("sections"), 1000);
}

TEST(SimulateCommand, AHuntFindsNothingAndReplaysATrialByteForByte) {
  const Scratch scratch;
  const Outcome hunt = simulate(scratch, {"redis-fenced", "--hunt", "--minutes", "0.02"});
  EXPECT_EQ(hunt.code, 0) << hunt.out << hunt.err;
  EXPECT_THAT(hunt.out, HasSubstr("redis-fenced: nothing found: "));
  const Outcome first = simulate(scratch, {"redis-fenced", "--replay", "7", "--trace-out", "t"});
  EXPECT_EQ(first.code, 0) << first.out << first.err;
  EXPECT_THAT(first.out, HasSubstr(" s  client-0  "));
  EXPECT_THAT(read_file(scratch / "t"), HasSubstr(" client-0 "));
  EXPECT_EQ(simulate(scratch, {"redis-fenced", "--replay", "7"}).out, first.out);
}

TEST(SimulateCommand, ExpectSafeFailsIfTwoClientsHeldALock) {
  const Scratch scratch;
  Words arguments{"redis-set-nx-lua", "--hold", "20ms",  "--ttl", "1s",
                  "--pauses",         "5%@3s",  "--out", "r.json"};
  EXPECT_EQ(simulate(scratch, arguments).code, 0);
  arguments.emplace_back("--expect-safe");
  EXPECT_EQ(simulate(scratch, arguments).code, 3);
  const Outcome shown = lockbench(scratch, {"show", "r.json"});
  EXPECT_THAT(shown.out, HasSubstr("two holders after: client-pause"));
}

}  // namespace
}  // namespace lockbench::test
