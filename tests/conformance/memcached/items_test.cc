#include <gmock/gmock.h>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/memcached/memcached_test_store.h"

namespace lockbench::test {
namespace {

void give_to_a_successor(std::string_view key) {
  shared_memcached().ask(fmt::format("delete {0}\r\nadd {0} 0 100 9\r\nsuccessor", key));
}
bool is_the_successors(const std::string& key) {
  return shared_memcached().ask("get " + key).at(1) == "successor";
}

TEST(Ttl, OfAMonthOrMoreIsRefusedInsteadOfTakenForADate) {
  Bench bench(*find_strategy("memcached-add"));
  const auto client = bench.client();
  const AcquireResult result = client->try_once(bench.key(), std::chrono::hours(24 * 30));
  EXPECT_EQ(result.outcome, AcquireOutcome::failed);
  EXPECT_THAT(result.reason, testing::HasSubstr("30 days"));
  EXPECT_TRUE(client->try_once(bench.key(), std::chrono::hours(24 * 29)).lease);
}

TEST(Keys, ThatMemcachedCannotHoldAreRefused) {
  Bench bench(*find_strategy("memcached-add-cas"));
  const auto client = bench.client();
  for (const std::string& key : {std::string(251, 'k'), std::string("a key"), std::string()}) {
    const AcquireResult result = client->try_once(key);
    EXPECT_EQ(result.outcome, AcquireOutcome::failed);
    EXPECT_THAT(result.reason, testing::HasSubstr("250 characters"));
  }
  EXPECT_TRUE(client->try_once(std::string(250, 'k')).lease);
}

/// The lock changes hands between the two commands of a release.
TEST(CasRelease, DoesNotRemoveASuccessor) {
  class Meddler : public ForwardingEnv {
   public:
    using ForwardingEnv::ForwardingEnv;
    CommandFate before_command(const CommandInfo& command) override {
      if (command.name == "cas") give_to_a_successor(command.key);
      return ForwardingEnv::before_command(command);
    }
  };
  Bench bench(*find_strategy("memcached-add-cas"));
  const auto system = make_system_env(7);
  Meddler meddler(*system);
  const auto lock = bench.lock_on(meddler);
  const Lease held = granted(
      lock->acquire({.key = bench.key(), .ttl = kLongTtl, .deadline = TimePoint{}, .stop = {}}));
  EXPECT_EQ(lock->release(held).outcome, ReleaseOutcome::not_owner);
  EXPECT_TRUE(is_the_successors(bench.key()));
  // The release changed nothing; a renewal is refused as well.
  EXPECT_EQ(lock->renew(held, kLongTtl).outcome, RenewOutcome::not_owner);
}

/// The lease has ended by the time the client learns of its grant, and another client has the lock.
AcquireResult acquire_late(const char* strategy) {
  Bench bench(*find_strategy(strategy));
  const auto client = bench.client();
  client->faults().next_answer_is_late(seconds(10), [&] { give_to_a_successor(bench.key()); });
  auto result = client->try_once(bench.key(), seconds(2));
  EXPECT_TRUE(is_the_successors(bench.key()));
  return result;
}

TEST(MemcachedLateGrants, AreDeclinedWithoutHarmToASuccessor) {
  for (const char* strategy : {"memcached-add", "memcached-add-cas"}) {
    const AcquireResult late = acquire_late(strategy);
    EXPECT_EQ(late.outcome, AcquireOutcome::refused) << strategy << ": " << late.reason;
  }
}

TEST(MemcachedStore, RemovesTheKeysNamedInBatchesUntilItIsStopped) {
  shared_store().clear();
  shared_memcached().ask("add other 0 0 1\r\n1");
  const auto store = store_at(shared_store().server().port());
  std::vector<std::string> keys;
  for (int i = 0; i < 1000; ++i) {
    keys.push_back(fmt::format("lockbench:many:{}", i));
    if (i % 2 == 0) shared_memcached().ask(fmt::format("add {} 0 0 1\r\n1", keys.back()));
  }
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_THAT(store->remove_keys(keys, stopped.get_token()).error().message,
              testing::HasSubstr("stopped before the end"));
  EXPECT_EQ(shared_store().keys().size(), 501U);
  EXPECT_EQ(store->remove_keys(keys, {}).value_or(0), 500U);
  EXPECT_THAT(shared_store().keys(), testing::ElementsAre("other"));
}

}  // namespace
}  // namespace lockbench::test
