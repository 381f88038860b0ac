#include <gmock/gmock.h>

#include "strategies/etcd/lock.h"
#include "strategies/registry.h"
#include "tests/conformance/common/waiter.h"
#include "tests/conformance/etcd/etcd_test_store.h"

namespace lockbench::test {
namespace {

using etcd::SessionStanding;

constexpr seconds kChubbyTtl{2};

class ChubbyTest : public testing::Test {
 protected:
  const Descriptor& strategy_ = *find_strategy("chubby");
};

/// Expects the grants of a writer and of the reader behind it. If `another`, a second writer queues
/// last.
void expect_reader_follows_writer(const Descriptor& strategy, bool another) {
  Bench bench(strategy);
  const auto writer = bench.client();
  const Lease written = granted(writer->acquire(bench.key(), patience()));
  Waiter reading(bench.client(), bench.key(), patience(), kLongTtl, Mode::shared);
  ASSERT_TRUE(reading.waits());
  std::optional<Waiter> queueing;
  if (another) {
    queueing.emplace(bench.client(), bench.key());
    ASSERT_TRUE(queueing->waits());
  }
  EXPECT_EQ(writer->release(written), ReleaseOutcome::released);
  const Lease read = granted(reading.join());
  const std::string guards = bench.key() + "/guard/";
  EXPECT_EQ(shared_etcd().probe().keys(guards).size(), 1U) << "nothing keeps others out";
  EXPECT_GT(*read.fencing, *written.fencing);
  EXPECT_EQ(reading.client().release(read), ReleaseOutcome::released);
  if (another) {
    EXPECT_GT(*granted(queueing->join()).fencing, *read.fencing);
  }
}

TEST_F(ChubbyTest, WhoSharesAfterAWriterHasAGuardAndANumberOfItsOwn) {
  for (const bool another : {false, true}) expect_reader_follows_writer(strategy_, another);
}

TEST_F(ChubbyTest, AFailureIsFollowedByTheDelayWhichALateReleaseDoesNotEnd) {
  const StrategyOptions options{.lock_delay = seconds(2)};
  Bench bench(strategy_, options);
  Bench other(strategy_, url_of(shared_etcd().server().port()), options);
  const auto holder = bench.client(), successor = other.client();
  const Lease held = granted(holder->share(bench.key(), {}, kChubbyTtl));
  bench.worlds().hold_back_all();
  const LeaseState& state = *held.state;
  // Wait until the server has ended the session: its place is gone, its guard stays.
  ASSERT_TRUE(eventually([] { return shared_etcd().probe().keys().size() == 1; }));
  EXPECT_EQ(holder->release(held), ReleaseOutcome::not_owner);
  EXPECT_EQ(shared_etcd().probe().keys().size(), 1U);
  // A sharer does not block other sharers.
  const Lease shared = granted(successor->share(bench.key(), {}, kChubbyTtl));
  successor->release(shared);
  EXPECT_EQ(successor->try_once(bench.key(), kChubbyTtl).outcome, AcquireOutcome::refused);
  const AcquireResult next = successor->acquire(bench.key(), patience(), kChubbyTtl);
  EXPECT_TRUE(next.lease) << next.reason;
  EXPECT_GE(successor->now(), state.valid_until() + options.lock_delay);
  bench.worlds().let_go();
}

TEST_F(ChubbyTest, TheDelayIsWholeHoweverLongAfterARenewalAClientFails) {
  HeldBench bench(seconds(4), strategy_, StrategyOptions{.lock_delay = seconds(1)});
  // The client fails right after a renewal of its session: the guard must have been renewed, too.
  const TimePoint first_end = bench.held.state->valid_until();
  ASSERT_TRUE(eventually([&] { return bench.held.state->valid_until() != first_end; }));
  bench.worlds().hold_back_all();
  std::vector<etcdserverpb::KeyValue> left;
  EXPECT_TRUE(eventually([&] {
    left = shared_etcd().probe().keys(bench.key());
    return left.size() < 2;
  }));
  bench.worlds().let_go();
  ASSERT_EQ(left.size(), 1U) << "both ended at once";
  EXPECT_THAT(left.front().key(), testing::HasSubstr("/guard/"));
}

TEST_F(ChubbyTest, InJeopardyAClientWaitsAndIsSafeAgainWhenTheStoreComesBack) {
  const auto tested = own_store();
  const StrategyOptions options{.lock_delay = seconds(20), .command_timeout = seconds(2)};
  Bench bench(strategy_, *tested, options);
  const auto client = bench.client();
  const Lease held = granted(client->acquire(bench.key(), patience(), kChubbyTtl));
  const LeaseState& session = *held.state;
  const auto standing = [&] {
    return etcd::standing_of(session, client->now(), options.lock_delay);
  };
  EXPECT_EQ(standing(), SessionStanding::safe);
  ASSERT_TRUE(tested->server().kill_hard());
  ASSERT_TRUE(eventually([&] { return !session.valid_at(client->now()); }));
  EXPECT_EQ(standing(), SessionStanding::jeopardy);
  AcquireResult another;
  std::jthread waiting(
      [&] { another = client->acquire(bench.key() + ":other", patience(), kChubbyTtl); });
  ASSERT_TRUE(client->trace().await_waiting());
  ASSERT_TRUE(tested->server().restart(true));
  waiting.join();
  EXPECT_EQ(standing(), SessionStanding::safe);
  ASSERT_TRUE(another.lease) << another.reason;
  EXPECT_EQ(another.lease->state, held.state) << "it is another session";
  EXPECT_EQ(client->release(held), ReleaseOutcome::released);
}

}  // namespace
}  // namespace lockbench::test
