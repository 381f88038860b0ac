#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/integration/run/watch.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

/// Runs on the shared server, expects exit code 0, and returns the result.
Json result_of(Words arguments) {
  const Scratch scratch;
  arguments.insert(arguments.begin(), {"run", "--redis", shared_redis().url(), "--out", "r.json"});
  const Outcome outcome = lockbench(scratch, arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return read_result(scratch / "r.json");
}

TEST(Resource, InRedisIsProtectedByALockAndByNothingElse) {
  RedisMonitor log(shared_redis().port());
  const Json result = result_of({"none", "redis-set-nx-lua", "--resource", "redis", "--hold", "1ms",
                                 "--warmup", "0ms", "--iterations", "100"});
  const Json& unprotected = run_of(result, "none").at("audit");
  EXPECT_GT(unprotected.at("lost_updates"), 0);
  EXPECT_EQ(unprotected.at("verdict"), "unprotected");
  const Json& exclusive = run_of(result, "redis-set-nx-lua").at("audit");
  EXPECT_EQ(exclusive.at("lost_updates"), 0);
  EXPECT_GT(exclusive.at("counter"), 0);
  EXPECT_EQ(exclusive.at("counter"), exclusive.at("increments"));

  std::map<std::string, std::set<std::string>> commands_on_counters;
  for (const SeenCommand& command : log.take_whole()) {
    for (const std::string& key : keys_of(command)) {
      if (key.ends_with(":counter")) commands_on_counters[key].insert(command.words.front());
    }
  }
  ASSERT_EQ(commands_on_counters.size(), 2U) << "one for each run";
  RedisProbe probe(shared_redis().port());
  for (const auto& [key, commands] : commands_on_counters) {
    EXPECT_EQ(commands, (std::set<std::string>{"GET", "SET", "UNLINK"})) << key;
    EXPECT_FALSE(probe.exists(key)) << key;
  }
}

TEST(Output, IsQuietOnStderrIfAskedTo) {
  const Scratch scratch;
  const Outcome quiet = lockbench(scratch, short_run({"local-mutex", "--quiet"}));
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.err, "");
  EXPECT_NE(quiet.out, "");
  const Outcome talking = lockbench(scratch, short_run({"local-mutex"}));
  EXPECT_NE(talking.err, "");
}

/// "\x1b[31m" and its like.
bool is_colored(const std::string& text) {
  for (std::size_t at = text.find("\x1b["); at != std::string::npos;
       at = text.find("\x1b[", at + 1)) {
    const std::size_t end = text.find_first_not_of("0123456789;", at + 2);
    if (end != std::string::npos && text[end] == 'm') return true;
  }
  return false;
}

TEST(Output, IsColoredOnATerminalOnlyUnlessNoColorIsSet) {
  const Scratch scratch;
  const Words arguments = {"run", "none", "--iterations", "100", "--warmup", "0ms"};
  const Outcome terminal = lockbench(scratch, arguments, {.terminal = true});
  EXPECT_TRUE(is_colored(terminal.out)) << terminal.out;
  const Outcome plain =
      lockbench(scratch, arguments, {.environment = {{"NO_COLOR", "1"}}, .terminal = true});
  EXPECT_EQ(plain.code, 0);
  EXPECT_NE(plain.out.find("none"), std::string::npos);
  EXPECT_FALSE(is_colored(plain.out)) << plain.out;
  const Outcome pipe = lockbench(scratch, arguments);
  EXPECT_EQ(pipe.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(pipe.err.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace lockbench::test
