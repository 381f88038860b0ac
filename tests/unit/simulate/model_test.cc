#include "simulate/redis/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/redis/scripts.h"

namespace lockbench::simulate {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Model : public testing::Test {
 protected:
  Reply ask(std::vector<std::string_view> words) { return model_.execute(session_, words, now_); }

  RedisModel model_;
  RedisModel::Session session_;
  WallTime now_{1'000'000h};
};

TEST_F(Model, ExpiresByTheTimeThatItIsGiven) {
  EXPECT_TRUE(ask({"SET", "k", "v", "NX", "PX", "100"}).is_text("OK"));
  now_ += 100ms;
  EXPECT_TRUE(ask({"GET", "k"}).is_text("v"));
  now_ += 1ms;
  EXPECT_TRUE(ask({"GET", "k"}).is_nil());
  EXPECT_TRUE(ask({"SET", "k", "w", "NX"}).is_text("OK"));
  now_ -= 1h;
  EXPECT_TRUE(ask({"GET", "k"}).is_text("w")) << "a clock may be set back";
}

TEST_F(Model, AFailureInAScriptNamesItsLine) {
  ask({"RPUSH", "k", "x"});
  const Reply reply = ask({"EVAL", "return\nredis.call('GET', KEYS[1])", "1", "k"});
  EXPECT_EQ(reply.type, Reply::Type::error);
  EXPECT_THAT(reply.text, HasSubstr("WRONGTYPE"));
  EXPECT_THAT(reply.text, HasSubstr("on @user_script:2."));
  EXPECT_TRUE(
      ask({"EVAL", "return redis.pcall('GET', KEYS[1]).err ~= nil", "1", "k"}).is_integer(1));
  EXPECT_THAT(ask({"EVAL", "return io", "0"}).text, "");
  EXPECT_THAT(ask({"EVAL", "return os.time()", "0"}).text, HasSubstr("attempt to index"));
}

TEST_F(Model, FullOfMemoryItRefusesOrEvicts) {
  model_.limit_memory(1000, Eviction::refuse, [] { return 0U; });
  for (int i = 0; i < 10; ++i) ask({"SET", "k" + std::to_string(i), "v"});
  EXPECT_THAT(ask({"SET", "k", "v"}).text, HasSubstr("OOM"));
  EXPECT_TRUE(ask({"GET", "k1"}).is_text("v"));
  model_.limit_memory(1000, Eviction::volatile_keys, [] { return 0U; });
  EXPECT_THAT(ask({"SET", "k", "v"}).text, HasSubstr("OOM")) << "nothing has a TTL";
  model_.limit_memory(1000, Eviction::all_keys, [] { return 0U; });
  EXPECT_TRUE(ask({"SET", "k", "v"}).is_text("OK"));
  EXPECT_TRUE(ask({"EXISTS", "k0"}).is_integer(0));
}

TEST_F(Model, ReplaysItsChangesToTheSameData) {
  RedisModel replica;
  model_.on_write = [&](const RedisModel::Write& write) { replica.apply(write); };
  const redis::Script& take = redis::scripts::reentrant_acquire;
  ask({"EVAL", take.source, "1", "lock", "me", "5000"});
  ask({"SET", "plain", "v", "PX", "3000"});
  ask({"MULTI"});
  ask({"INCR", "number"});
  ask({"ZADD", "set", "3", "c", "1", "a"});
  ask({"EXEC"});
  now_ += 1s;
  ask({"EVALSHA", take.sha1, "1", "lock", "another", "5000"});
  const auto both_say = [&](std::vector<std::string_view> words) {
    RedisModel::Session session;
    const Reply copy = replica.execute(session, words, now_), own = ask(words);
    EXPECT_EQ(copy.integer, own.integer) << words[0];
    EXPECT_EQ(copy.text, own.text) << words[0];
    EXPECT_EQ(copy.elements.size(), own.elements.size()) << words[0];
  };
  both_say({"HGET", "lock", "me"});
  both_say({"PTTL", "lock"});
  both_say({"PTTL", "plain"});
  both_say({"GET", "number"});
  both_say({"ZRANGE", "set", "0", "-1"});
}

}  // namespace
}  // namespace lockbench::simulate
