#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

/// A redis-server that leaves a file behind when it is started, by whatever account.
std::string with_tell_tale_server(const Scratch& scratch) {
  const std::string path = scratch.write("redis-server", "#!/bin/sh\n: > \"$0.was-started\"\n");
  for (const auto& one : {std::filesystem::path(path), scratch.path()}) {
    std::filesystem::permissions(one, std::filesystem::perms::all);
  }
  return scratch.path().string() + ":/usr/bin:/bin";
}

/// One of each kind; the unit tests have the others.
TEST(UsageErrors, AreOneLineAndNothingElseHappens) {
  const std::string nowhere = fmt::format("redis://ann:hunter2@127.0.0.1:{}", closed_port());
  const std::vector<std::pair<Words, std::string>> mistakes = {
      {{"rnu"}, "no such command"},
      {{"run", "redis-set-nx", "--duration", "5"}, "--duration"},
      {{"run", "redis-set-nx", "--config", "config.toml"}, "config.toml: line 2"},
      {{"run", "redis-set-nx", "--redis", nowhere}, "--redis"},
      {{"run", "redis-set-nx", "--out", "."}, "--out"}};
  for (const auto& [arguments, culprit] : mistakes) {
    const Scratch scratch;
    const std::string path = with_tell_tale_server(scratch);
    scratch.write("config.toml", "ttl = \"1s\"\nclients = = 3\n");
    const Words files_before = scratch.files();
    Outcome outcome = lockbench(scratch, arguments, {.environment = {{"PATH", path}}});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    if (outcome.err.starts_with("lockbench: warning: the process list")) {
      outcome.err.erase(0, outcome.err.find('\n') + 1);
    }
    EXPECT_EQ(lines_of(outcome.err).size(), 1U) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("lockbench: ")) << outcome.err;
    EXPECT_NE(outcome.err.find(culprit), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("hunter2"), std::string::npos) << outcome.err;
    EXPECT_EQ(scratch.files(), files_before);
  }
}

/// Proves that the test above can fail.
TEST(UsageErrors, AServerThatWasStartedWouldHaveBeenSeen) {
  const Scratch scratch;
  const std::string path = with_tell_tale_server(scratch);
  const Outcome outcome =
      lockbench(scratch, {"run", "redis-set-nx"}, {.environment = {{"PATH", path}}});
  EXPECT_EQ(outcome.code, 1) << "it is no real server, so the strategy that was named cannot run";
  EXPECT_NE(outcome.err.find("redis-set-nx cannot run here"), std::string::npos) << outcome.err;
  const Words files = scratch.files();
  EXPECT_NE(std::find(files.begin(), files.end(), "redis-server.was-started"), files.end());
}

}  // namespace
}  // namespace lockbench::test
