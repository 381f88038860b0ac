#include "strategies/redis/client/rights.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/full_use.h"
#include "tests/conformance/redis-wait/replicated_store.h"

namespace lockbench::test {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
  std::istringstream stream(text);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// For a user `tested`, as test servers have a user lockbench with all rights.
Words acl_of(std::span<const Descriptor* const> strategies) {
  Words words = words_of(redis::acl_command(strategies));
  words.at(2) = "tested";
  std::replace(words.begin(), words.end(), std::string(">PASSWORD"), std::string(">hunter2"));
  return words;
}

/// "+get" and so on.
Words rights_of(std::span<const Descriptor* const> strategies) {
  Words words = acl_of(strategies);
  std::erase_if(words, [](const std::string& word) { return !word.starts_with('+'); });
  return words;
}

std::vector<const Descriptor*> redis_strategies() {
  auto all = all_strategies();
  std::erase_if(all, [](const Descriptor* one) { return one->backend != "redis"; });
  return all;
}

/// A server with the user that lockbench proposes and a log of denied commands.
class RedisRights : public testing::Test {
 protected:
  RedisRights() {
    admin_.ask(acl_of(all_strategies()));
    admin_.ask({"ACL", "LOG", "RESET"});
  }
  ~RedisRights() override { admin_.ask({"ACL", "DELUSER", "tested"}); }

  std::string url(int database) const {
    return fmt::format("redis://tested:hunter2@127.0.0.1:{}/{}", port_, database);
  }
  /// Three databases of one server are the nodes of a quorum.
  std::string use(const Descriptor& strategy, Duration patience = kPatience) const {
    const bool quorum = strategy.traits.nodes > 1;
    return use_fully(strategy, quorum ? Words{url(1), url(2), url(3)} : Words{url(1)}, patience);
  }
  bool was_denied() { return !admin_.ask({"ACL", "LOG"}).empty(); }
  /// A short time first, as some strategies wait in vain without the right; then a longer one, as
  /// on a busy machine the command may not have been sent.
  bool is_missed(const std::string& right) {
    if (right == "+command|info") return !store_at_url()->missing(Words{"get"});
    if (right == "+unsubscribe") return unsubscribing_is_denied();
    for (const Duration longest : {milliseconds(300), milliseconds(10'000)}) {
      for (const Descriptor* strategy : redis_strategies()) {
        const Words own = rights_of({&strategy, 1});
        if (std::find(own.begin(), own.end(), right) == own.end()) continue;
        admin_.ask({"FLUSHALL"});  // removes locks that could not be released
        (void)use(*strategy, longest);
        if (was_denied()) return true;
      }
    }
    return false;
  }
  std::unique_ptr<Store> store_at_url() const {
    return find_store_kind("redis")->make(url(1), kPatience);
  }
  /// A channel is left some time after its last waiter.
  bool unsubscribing_is_denied() {
    Bench bench(*find_strategy("redis-reentrant-notify"), url(1), notified());
    const auto holder = bench.client(), waiter = bench.client();
    const AcquireResult held = holder->acquire(bench.key(), kPatience);
    const auto has_listened = [&] {
      (void)waiter->acquire(bench.key(), milliseconds(50));
      return !admin_.ask({"PUBSUB", "CHANNELS"}).empty();
    };
    return held.lease && eventually(has_listened) && eventually([&] { return was_denied(); });
  }

  const std::uint16_t port_ = shared_store().server().port();
  RedisProbe admin_{port_};
};

TEST_F(RedisRights, AreEnough) {
  for (const Descriptor* strategy : redis_strategies()) {
    EXPECT_EQ(use(*strategy), "") << strategy->name;
  }
  EXPECT_EQ(admin_.ask({"ACL", "LOG"}), "");
}

TEST_F(RedisRights, AreAllNeeded) {
  for (const std::string& right : rights_of(redis_strategies())) {
    // Only needed for a master behind sentinels, and for an expired lock.
    if (right == "+role" || right == "+getset") continue;
    admin_.ask({"ACL", "SETUSER", "tested", "-" + right.substr(1)});
    EXPECT_TRUE(is_missed(right)) << right;
    admin_.ask({"ACL", "SETUSER", "tested", right});
    admin_.ask({"ACL", "LOG", "RESET"});
  }
}

TEST_F(RedisRights, GiveNothingElse) {
  admin_.ask({"SET", "foreign", "1"});
  RedisProbe user(port_);
  user.ask({"AUTH", "tested", "hunter2"});
  std::istringstream commands(
      "FLUSHALL;FLUSHDB;SWAPDB 0 1;SCRIPT FLUSH;SCRIPT KILL;CLIENT KILL ID 1;CLIENT PAUSE 1;"
      "CONFIG GET *;CONFIG SET maxmemory 1;SHUTDOWN NOSAVE;DEBUG SLEEP 0;ACL LIST;"
      "ACL SETUSER tested +@all;REPLICAOF NO ONE;FAILOVER;KEYS *;RENAME foreign lockbench:mine;"
      "GET foreign;SET foreign 2;UNLINK foreign;PUBLISH foreign 1;MONITOR;MODULE LIST;"
      "MIGRATE h 1 foreign 0 1;SAVE;BGREWRITEAOF;CLUSTER INFO");
  for (std::string command; std::getline(commands, command, ';');) {
    // DEBUG and MODULE are forbidden even with the right.
    EXPECT_THAT([&] { user.ask(words_of(command)); },
                testing::ThrowsMessage<std::runtime_error>(
                    testing::AnyOf(HasSubstr("NOPERM"), HasSubstr("command not allowed"))))
        << command;
  }
  EXPECT_THAT(
      [&] {
        user.ask({"EVAL", "return redis.call('GET', 'foreign')", "0"});
      },
      testing::ThrowsMessage<std::runtime_error>(HasSubstr("can't access")));
  admin_.ask({"DEL", "foreign"});
}

}  // namespace
}  // namespace lockbench::test
