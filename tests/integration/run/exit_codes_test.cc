#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/folders.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

TEST(ExitCode, IsTwoWhenTheServerDiesInMidRun) {
  const auto server = own_redis();
  const Scratch scratch;
  Program program(scratch,
                  {"run", "redis-set-nx", "--redis", server->url(), "--clients", "4", "--warmup",
                   "0ms", "--duration", "3s", "--hold", "1ms", "--out", "r.json", "--strict"});
  {
    RedisProbe probe(server->port());
    ASSERT_TRUE(eventually([&] { return probe.calls_of("del") > 20; }));
  }
  ASSERT_TRUE(server->kill_hard());
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  expect_in(outcome.err, "left behind");
  EXPECT_EQ(outcome.err.find("did not start"), std::string::npos);
  const Json result = read_result(scratch / "r.json");
  EXPECT_FALSE(result.at("interrupted"));
  const Json& run = run_of(result, "redis-set-nx");
  const Json& outcomes = run.at("outcomes");
  EXPECT_GT(outcomes.at("failed").get<int>() + outcomes.at("unknown").get<int>(), 0);
  EXPECT_GT(outcomes.at("acquired"), 15) << "and one by each client before the load";
  EXPECT_FALSE(run.at("errors").empty());
  EXPECT_FALSE(run.at("generator").at("valid"));
}

TEST(Exit, RunsNoStaticDestructorsThatAThreadMayNeed) {
  const Scratch scratch;
  Setting setting;
  setting.environment["LD_PRELOAD"] = LOCKBENCH_BINARY_DIR "/lockbench-exit-witness.so";
  const Outcome outcome = lockbench(scratch, {"--version"}, setting);
  EXPECT_EQ(outcome.signal, 0) << outcome.err;
  EXPECT_EQ(outcome.code, 0);
  expect_in(outcome.out, "lockbench ");
}

using Words = std::vector<std::string>;

/// A redis-server that creates a file when it is started, under any account.
std::string with_tell_tale_server(const Scratch& scratch) {
  const std::string path = scratch.write("redis-server", "#!/bin/sh\n: > \"$0.was-started\"\n");
  for (const auto& one : {std::filesystem::path(path), scratch.path()}) {
    std::filesystem::permissions(one, std::filesystem::perms::all);
  }
  return scratch.path().string() + ":/usr/bin:/bin";
}

/// Unit tests check the messages.
TEST(UsageErrors, ComeBeforeAnythingIsStartedOrWritten) {
  // The last one proves that a started server would have been noticed.
  for (const auto& [arguments, starts] :
       std::vector<std::pair<Words, bool>>{{{"run", "redis-set-nx", "--duration", "5"}, false},
                                           {{"run", "redis-set-nx", "--out", "."}, false},
                                           {{"run", "redis-set-nx"}, true}}) {
    const Scratch scratch;
    const std::string path = with_tell_tale_server(scratch);
    const Outcome outcome = lockbench(scratch, arguments, {.environment = {{"PATH", path}}});
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    const Words files = scratch.files();
    const auto was_started = std::count(files.begin(), files.end(), "redis-server.was-started");
    EXPECT_EQ(was_started, starts ? 1 : 0) << outcome.err;
    if (starts) {
      expect_in(outcome.err, "redis-set-nx cannot run here");
    } else {
      EXPECT_EQ(files, Words{"redis-server"});
      EXPECT_EQ(outcome.out, "");
      EXPECT_EQ(lines_of(outcome.err).size(), 1U) << outcome.err;
    }
  }
}

}  // namespace
}  // namespace lockbench::test
