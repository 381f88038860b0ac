#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folders.h"
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
  const Outcome cut =
      simulate(scratch, {"redis-fenced", "--replay", "7", "--trace-out", "/dev/full"});
  EXPECT_EQ(cut.code, 2);
  EXPECT_THAT(cut.err, HasSubstr("not everything could be written"));
}

TEST(SimulateCommand, ASweepHasARowForEachValueAsIfItWasTheOnlyOne) {
  const Scratch scratch;
  const Words load{"redis-set-nx-lua", "memcached-add-cas", "--hold", "20ms",  "--pauses",
                   "2%@exp(3s)",       "--duration",        "60s",    "--out", "r.json"};
  const auto play = [&](Words more) {
    more.insert(more.begin(), load.begin(), load.end());
    const Outcome outcome = simulate(scratch, more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_result(scratch / "r.json");
  };
  const Json alone = play({"--ttl", "10s"}).at("simulation");
  const Json swept = play({"--sweep", "ttl=1s,10s", "--report", "r.html"});
  EXPECT_EQ(swept.at("workload").at("ttl"), Json({"1s", "10s"}));
  const Json& rows = swept.at("simulation");
  ASSERT_EQ(rows.size(), 4U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Json row = rows[i];
    const bool last = i % 2 == 1;
    EXPECT_EQ(
        row.at("swept"),
        (Json{{"option", "ttl"}, {"value", last ? "10s" : "1s"}, {"seconds", last ? 10.0 : 1.0}}));
    if (!last) continue;
    row.erase("swept");
    EXPECT_EQ(row, alone[i / 2]);
  }
  EXPECT_GT(rows[0].at("violations"), rows[1].at("violations"));
  const Outcome shown = lockbench(scratch, {"show", "r.json", "--format", "markdown"});
  EXPECT_THAT(shown.out, HasSubstr("unavailable"));
  EXPECT_THAT(shown.out, HasSubstr("ttl 10s"));
  EXPECT_THAT(shown.out, HasSubstr("fewest grants to two holders with ttl"));
  EXPECT_THAT(read_file(scratch / "r.html"), HasSubstr("Unavailability by ttl"));
}

TEST(SimulateCommand, IsCalibratedByTheRunsAloneOfAResult) {
  const Scratch scratch;
  const std::string reference = LOCKBENCH_SOURCE_DIR "/results/reference/alone.json";
  std::vector<double> medians;
  for (const Words& more : {Words(), Words{"--calibrate", reference}}) {
    Words arguments{"redis-queue", "--clients", "1", "--out", "r.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = simulate(scratch, arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    medians.push_back(
        read_result(scratch / "r.json").at("simulation").at(0).at("acquire").at("p50"));
  }
  // 90 µs in the reference results, and 77 µs for a release.
  EXPECT_LT(medians[0], 75e-6);
  EXPECT_NEAR(medians[1], 88e-6, 10e-6);
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
