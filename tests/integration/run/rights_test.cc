#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

/// Makes the user that lockbench proposes for Redis, under another name: the servers of tests have
/// a user lockbench, who may do anything.
void make_user(RedisProbe& admin, const Scratch& scratch) {
  std::istringstream proposal(lockbench(scratch, {"list", "--redis-acl"}).out);
  Words words;
  for (std::string word; proposal >> word;)
    words.push_back(word == ">PASSWORD" ? ">hunter2" : word);
  words.at(2) = "tested";
  admin.ask(words);
  admin.ask({"ACL", "LOG", "RESET"});
}

TEST(ProposedRedisUser, MayRunProbeAndClean) {
  const auto redis = own_redis();
  RedisProbe admin(redis->port());
  const Scratch scratch;
  make_user(admin, scratch);
  const std::string url =
      scratch.write("redis", fmt::format("redis://tested:hunter2@127.0.0.1:{}/1", redis->port()));
  const Words last{"--redis", "@" + url};
  for (Words arguments :
       std::vector<Words>{{"doctor"},
                          {"run", "redis-fenced", "redis-queue", "--resource", "redis-fenced",
                           "--iterations", "50", "--warmup", "0s", "--out", "r.json"},
                          {"probe", "redis-watchdog", "--rate", "20", "--duration", "1s"},
                          {"clean", "--run", "20200101T000000Z-abcdef"}}) {
    arguments.insert(arguments.end(), last.begin(), last.end());
    const Outcome outcome = lockbench(scratch, arguments);
    EXPECT_EQ(outcome.code, 0) << arguments.front() << ": " << outcome.err << outcome.out;
    EXPECT_EQ(outcome.err.find("no permission"), std::string::npos) << outcome.err;
    EXPECT_EQ(admin.ask({"ACL", "LOG"}), "") << arguments.front();
  }
}

}  // namespace
}  // namespace lockbench::test
