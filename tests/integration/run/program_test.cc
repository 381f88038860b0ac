#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folders.h"
#include "tests/integration/support/documents.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using testing::HasSubstr;

std::string client(const std::string& script) {
  return "python3 " LOCKBENCH_SOURCE_DIR "/tests/programs/" + script;
}

TEST(ClientProgram, RunsBesideAStrategyAndShowsItsEmptyRoundTrip) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"run", "redis-set-nx-lua", "--client", client("redis_lock.py"),
                          "--clients", "6", "--clients-per-process", "2", "--duration", "1500ms",
                          "--warmup", "100ms", "--contended-grants", "1", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch.path() / "r.json");
  const Json& run = run_of(result, "redis_lock");
  EXPECT_TRUE(kept_exclusion(run)) << run["audit"];
  EXPECT_GT(run["sections"], 0);
  EXPECT_EQ(run["program"]["name"], "plain Redis");
  EXPECT_EQ(run["program"]["processes"], 3);
  EXPECT_GT(run["program"]["echo"]["count"], 0);
  EXPECT_TRUE(run["commands_per_section"].is_null());
  EXPECT_FALSE(run_of(result, "redis-set-nx-lua").contains("program"));
  expect_in(outcome.out, "echo");
}

TEST(CheckClient, FindsThatASoundProgramKeepsEachPromise) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"check-client", client("redis_lock.py")});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_GE(std::ranges::count(outcome.out, '\n'), 30);
  expect_in(outcome.out, "promises kept, 0 broken, ");
}

TEST(CheckClient, NamesThePromiseThatABrokenProgramBreaks) {
  const Scratch scratch;
  for (const auto& [kind, promise] :
       std::map<std::string, std::string>{{"unchecked", "strangers-release"},
                                          {"ttl0", "renews"},
                                          {"proceeds", "unreachable"},
                                          {"forever", "dead-holder"},
                                          {"dies", "long-keys"}}) {
    const Outcome outcome = lockbench(scratch, {"check-client", client("variants.py " + kind)});
    EXPECT_EQ(outcome.code, 3) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("BROKEN  " + promise));
    expect_in(outcome.out, "sent ");
    // A new process keeps what one that died cannot.
    if (kind == "dies") expect_in(outcome.out, "kept    release ");
  }
}

TEST(CheckClient, LeavesNothingOnTheUsersServer) {
  const Scratch scratch;
  const Outcome outcome = lockbench(
      scratch, {"check-client", client("variants.py forever"), "--redis", shared_redis().url()});
  EXPECT_EQ(outcome.code, 3) << outcome.out << outcome.err;
  EXPECT_THAT(RedisProbe(shared_redis().port()).keys(), testing::IsEmpty());
}

}  // namespace
}  // namespace lockbench::test
