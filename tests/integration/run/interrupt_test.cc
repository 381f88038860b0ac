#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/processes.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

TEST(Interrupt, SavesReportsAndCleansUp) {
  const auto server = own_redis();
  RedisProbe probe(server->port());
  const Scratch scratch;
  Program program(scratch,
                  {"run", "redis-setnx", "none", "--redis", server->url(), "--warmup", "0ms",
                   "--duration", "60s", "--hold", "1ms", "--resource", "redis", "--out", "r.json"});
  ASSERT_TRUE(eventually([&] { return probe.calls_of("del") > 20; }));
  EXPECT_FALSE(probe.keys().empty());
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.err;
  EXPECT_NE(outcome.err.find("stopping"), std::string::npos);
  EXPECT_NE(outcome.out.find("redis-setnx"), std::string::npos) << "the table is shown";
  EXPECT_EQ(probe.keys(), std::vector<std::string>{});

  const Json result = read_result(scratch / "r.json");
  EXPECT_TRUE(result.at("interrupted"));
  ASSERT_EQ(result.at("runs").size(), 1U) << "what had not begun does not begin";
  const Json& run = result.at("runs").front();
  EXPECT_GT(run.at("sections"), 0);
  EXPECT_EQ(run.at("outcomes").at("failed"), 0);
  EXPECT_EQ(run.at("outcomes").at("unknown"), 0);
  EXPECT_TRUE(kept_exclusion(run));
}

/// A command with several steps, and their place in the result.
struct Stopped {
  std::string name;
  std::vector<std::string> command;
  Json::json_pointer over;
};

std::vector<Stopped> stopped() {
  return {{"capacity",
           {"capacity", "redis-queue", "redis-fenced", "--hold", "2ms", "--slo", "acquire.p99<20ms",
            "--duration", "1s", "--warmup", "100ms"},
           Json::json_pointer("/capacity/0/rates")},
          {"quorum",
           {"quorum", "--nodes", "1", "--duration", "400ms", "--clients", "2"},
           Json::json_pointer("/runs")},
          {"hazards",
           {"hazards", "pause-holding", "overrun-holding", "--strategies", "redis-set-nx-lua",
            "--repeat", "10", "--at-once", "1"},
           Json::json_pointer("/hazards")}};
}

namespace fs = std::filesystem;

TEST(KilledHazards, LeaveNoProcessBehindNotEvenAStoppedOne) {
  const Foster foster;
  const Scratch scratch;
  // No other client gets this lock while its holder is stopped, so the play takes a while.
  Program program(scratch,
                  {"hazards", "pause-holding", "--strategies", "redis-setnx", "--out", "r.json"});
  std::vector<pid_t> all;
  const auto one_is_stopped = [&] {
    all = descendants_of(program.pid());
    return std::any_of(all.begin(), all.end(), [](pid_t pid) { return look_at(pid).state == 'T'; });
  };
  ASSERT_TRUE(eventually(one_is_stopped));
  EXPECT_GE(all.size(), 4U) << "two clients, a server, and who supervises it";
  program.signal(SIGKILL);
  EXPECT_EQ(program.finish().signal, SIGKILL);
  EXPECT_TRUE(Foster::all_end(all));
}

class KilledCommand : public testing::TestWithParam<Stopped> {};

TEST_P(KilledCommand, LeavesWhatWasOverToItsReaders) {
  const Scratch scratch;
  std::vector<std::string> command = GetParam().command;
  command.insert(command.end(), {"--out", "r.json"});
  Program program(scratch, command);
  const auto has_a_step = [&] {
    return fs::exists(scratch / "r.json") &&
           !read_result(scratch / "r.json").at(GetParam().over).empty();
  };
  const bool kept = eventually(has_a_step);
  program.signal(SIGKILL);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.signal, SIGKILL);
  ASSERT_TRUE(kept) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_TRUE(result.at("interrupted"));
  EXPECT_GE(result.at(GetParam().over).size(), 1U);
  const Outcome reported = lockbench(scratch, {"report", "r.json", "--out", "r.html"});
  EXPECT_EQ(reported.code, 0) << reported.err;
  expect_in(read_file(scratch / "r.html"), "interrupted: these are the figures up to then");
  const Outcome shown = lockbench(scratch, {"show", "r.json"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  expect_in(shown.out, "interrupted");
}

INSTANTIATE_TEST_SUITE_P(EachOf, KilledCommand, testing::ValuesIn(stopped()),
                         [](const auto& test) { return test.param.name; });

TEST(KilledRun, IsSavedAsFarAsItCameAndCanBeResumed) {
  const Scratch scratch;
  const std::vector<std::string> command{"run",   "none",     "local-mutex", "--duration",
                                         "300ms", "--warmup", "0ms",         "--repeat",
                                         "4",     "--out",    "r.json",      "--resume"};
  Program program(scratch, command);
  ASSERT_TRUE(eventually([&] { return fs::exists(scratch / "r.json"); }));
  program.signal(SIGKILL);
  EXPECT_EQ(program.finish().signal, SIGKILL);
  const Json saved = read_result(scratch / "r.json");
  EXPECT_TRUE(saved.at("interrupted"));
  const std::size_t made = saved.at("runs").size();
  ASSERT_GE(made, 1U);
  ASSERT_LT(made, 8U);

  const Outcome resumed = lockbench(scratch, command);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_FALSE(result.at("interrupted"));
  ASSERT_EQ(result.at("runs").size(), 8U);
  for (std::size_t i = 0; i < made; ++i) {
    EXPECT_EQ(result.at("runs").at(i).at("sections"), saved.at("runs").at(i).at("sections"));
  }
  std::set<std::pair<std::string, int>> distinct;
  for (const Json& run : result.at("runs")) {
    distinct.emplace(run.at("strategy"), run.at("repetition"));
  }
  EXPECT_EQ(distinct.size(), 8U);

  for (const std::string option : {"clients", "seed"}) {
    std::vector<std::string> otherwise = command;
    otherwise.insert(otherwise.end(), {"--" + option, "3"});
    const Outcome refused = lockbench(scratch, otherwise);
    EXPECT_EQ(refused.code, 1);
    expect_in(refused.err, option);
  }
}

TEST(KilledRun, KeepsARunThatEndedEarlyByItselfAndRepeatsOneThatAStopCutShort) {
  const Scratch scratch;
  const std::vector<std::string> command{"run",      "local-mutex", "--iterations", "50",
                                         "--repeat", "2",           "--warmup",     "0ms",
                                         "--out",    "r.json",      "--resume"};
  ASSERT_EQ(lockbench(scratch, command).code, 0);
  Json saved = read_result(scratch / "r.json");
  saved.at("interrupted") = true;
  saved.at("runs").at(0).at("release").at("max") = 77;
  saved.at("runs").at(1).at("release").at("max") = 77;
  saved.at("runs").at(1)["interrupted"] = true;
  std::ofstream(scratch / "r.json") << saved;
  const Outcome resumed = lockbench(scratch, command);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const Json result = read_result(scratch / "r.json");
  ASSERT_EQ(result.at("runs").size(), 2U);
  EXPECT_EQ(result.at("runs").at(0).at("release").at("max"), 77);
  EXPECT_NE(result.at("runs").at(1).at("release").at("max"), 77);
  EXPECT_FALSE(result.at("runs").at(1).contains("interrupted"));
}

TEST(KilledRun, IsNotResumedWithAnotherVersionOfItsServer) {
  const Scratch scratch;
  const std::vector<std::string> command{
      "run",     "redis-set-nx",       "--iterations", "50",     "--warmup", "0ms",
      "--redis", shared_redis().url(), "--out",        "r.json", "--resume"};
  ASSERT_EQ(lockbench(scratch, command).code, 0);
  EXPECT_EQ(lockbench(scratch, command).code, 0);
  Json saved = read_result(scratch / "r.json");
  for (Json& server : saved.at("environment").at("servers")) server.at("version") = "0.1";
  std::ofstream(scratch / "r.json") << saved;
  const Outcome refused = lockbench(scratch, command);
  EXPECT_EQ(refused.code, 1);
  expect_in(refused.err, "was measured differently: redis 0.1 and ");
}

}  // namespace
}  // namespace lockbench::test
