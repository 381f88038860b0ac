#include <gmock/gmock.h>

#include "strategies/nats/client/messages.h"
#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/nats/nats_test_store.h"

namespace lockbench::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::string stream_of(std::string_view key) { return nats::place_of(key, true).stream; }

/// The lock changes hands between the two messages of a release.
TEST(NatsRelease, DoesNotRemoveASuccessor) {
  class Meddler : public ForwardingEnv {
   public:
    using ForwardingEnv::ForwardingEnv;
    CommandFate before_command(const CommandInfo& command) override {
      if (armed && command.name == "HPUB") {
        shared_nats().put(nats::place_of(command.key, true).subject, "successor");
      }
      return ForwardingEnv::before_command(command);
    }
    bool armed = false;
  };
  Bench bench(*find_strategy("nats-kv"));
  const auto system = make_system_env(7);
  Meddler meddler(*system);
  const auto lock = bench.lock_on(meddler);
  const Lease held = granted(
      lock->acquire({.key = bench.key(), .ttl = kLongTtl, .deadline = TimePoint{}, .stop = {}}));
  meddler.armed = true;
  EXPECT_EQ(lock->release(held).outcome, ReleaseOutcome::not_owner);
  EXPECT_THAT(shared_store().keys(), ElementsAre(bench.key()));
  // The release changed nothing; a renewal is refused as well.
  EXPECT_EQ(lock->renew(held, kLongTtl).outcome, RenewOutcome::not_owner);
}

TEST(NatsBucket, HasTheLongestTtlThatWasAskedFor) {
  Bench bench(*find_strategy("nats-kv"));
  const auto first = bench.client(), second = bench.client();
  first->give_back(granted(first->try_once(bench.key(), seconds(5))));
  EXPECT_EQ(shared_nats().max_age_of(stream_of(bench.key())), seconds(5));
  const Lease held = granted(second->try_once(bench.key(), seconds(20)));
  EXPECT_EQ(shared_nats().max_age_of(stream_of(bench.key())), seconds(20));
  // A loser changes nothing, and a shorter TTL neither.
  EXPECT_EQ(first->try_once(bench.key(), seconds(60)).outcome, AcquireOutcome::refused);
  second->give_back(held);
  first->give_back(granted(first->try_once(bench.key(), seconds(5))));
  EXPECT_EQ(shared_nats().max_age_of(stream_of(bench.key())), seconds(20));
}

/// As after a restart without data.
TEST(NatsBucket, IsMadeAnewIfItIsGone) {
  Bench bench(*find_strategy("nats-kv"));
  const auto client = bench.client();
  const Lease held = granted(client->try_once(bench.key()));
  shared_store().clear();
  EXPECT_EQ(client->release(held), ReleaseOutcome::not_owner);
  client->give_back(granted(client->try_once(bench.key())));
}

TEST(NatsKeys, AnyCharacterIsPossibleAndTooManyAreRefused) {
  Bench bench(*find_strategy("nats-kv"));
  const auto client = bench.client();
  for (const std::string& key : {std::string("a.b..c>*"), std::string("ä key=\r\n"),
                                 std::string("."), std::string(512, '{')}) {
    const Lease held = granted(client->try_once(key));
    EXPECT_THAT(shared_store().keys(), ElementsAre(key));
    EXPECT_EQ(client->release(held), ReleaseOutcome::released);
  }
  for (const std::string& key : {std::string(513, 'k'), std::string()}) {
    const AcquireResult result = client->try_once(key);
    EXPECT_EQ(result.outcome, AcquireOutcome::failed);
    EXPECT_THAT(result.reason, HasSubstr("512 characters"));
  }
}

TEST(NatsStore, RemovesTheBucketsOfARunAndNoOthers) {
  const std::string run = "20990101T000000Z-abcdef";
  for (const char* name : {"nats-kv", "nats-observed-lease"}) {
    Bench bench(*find_strategy(name));  // clears the store
    const auto client = bench.client();
    for (const std::string& key : {run + ":{1}", run + "-2:{1}", run + "a:{1}"}) {
      (void)granted(client->try_once("lockbench:" + key));
    }
    const auto store = store_at(shared_store().server().port());
    EXPECT_EQ(store->remove_run(run, {}).value_or(99), 2U) << "its own, and its part's";
    EXPECT_THAT(shared_store().keys(), ElementsAre("lockbench:" + run + "a:{1}"));
    const std::string left = "lockbench:" + run + "a:{1}";
    EXPECT_EQ(store->remove_keys({&left, 1}, {}).value_or(99), 1U);
    EXPECT_THAT(shared_store().keys(), IsEmpty());
    EXPECT_EQ(store->remove_keys({&left, 1}, {}).value_or(99), 0U);
  }
}

/// Each grant's number is a revision of the key, which a release and a deletion do not set back.
TEST(NatsFencing, GrowsWithEachGrant) {
  Bench bench(*find_strategy("nats-kv"));
  const auto client = bench.client();
  std::uint64_t highest = 0;
  for (int grant = 0; grant < 4; ++grant) {
    const Lease held = granted(client->try_once(bench.key()));
    ASSERT_TRUE(held.fencing);
    EXPECT_GT(*held.fencing, highest);
    highest = *held.fencing;
    if (grant == 1) {
      shared_store().take_away(bench.named_keys());
    } else {
      client->give_back(held);
    }
  }
}

}  // namespace
}  // namespace lockbench::test
