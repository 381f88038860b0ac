#include "strategies/etcd/chubby.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/etcd/etcd_test_store.h"

namespace lockbench::test {
namespace {

using etcd::SessionStanding;

constexpr seconds kChubbyTtl{2};

class ChubbyTest : public testing::Test {
 protected:
  const Descriptor& strategy_ = *find_strategy("chubby");

  static AcquireResult acquire(Client& client, const std::string& key, Mode mode,
                               Duration patience = {}) {
    return client.lock().acquire({.key = key,
                                  .ttl = kChubbyTtl,
                                  .deadline = client.now() + patience,
                                  .mode = mode,
                                  .stop = {}});
  }
};

/// What a writer and the reader behind it were granted. A second writer queues last if `another`.
void expect_reader_follows_writer(const Descriptor& strategy, bool another) {
  Bench bench(strategy);
  const auto writer = bench.client();
  const auto reader = bench.client();
  const auto last = bench.client();
  const auto acquire_waiting = [&](Client& client, Mode mode) {
    return client.lock().acquire({.key = bench.key(),
                                  .ttl = kLongTtl,
                                  .deadline = client.now() + patience(),
                                  .mode = mode,
                                  .stop = {}});
  };
  const AcquireResult written = acquire_waiting(*writer, Mode::exclusive);
  ASSERT_TRUE(written.lease) << written.reason;
  AcquireResult read, late;
  std::thread reading([&] { read = acquire_waiting(*reader, Mode::shared); });
  EXPECT_TRUE(reader->trace().await_waiting());
  std::thread queueing;
  if (another) {
    queueing = std::thread([&] { late = acquire_waiting(*last, Mode::exclusive); });
    EXPECT_TRUE(last->trace().await_waiting());
  }
  EXPECT_EQ(writer->release(*written.lease), ReleaseOutcome::released);
  reading.join();
  const std::string guards = bench.key() + "/guard/";
  EXPECT_EQ(shared_etcd().probe().keys(guards).size(), 1U) << "nothing keeps others out";
  if (read.lease) {
    EXPECT_GT(*read.lease->fencing, *written.lease->fencing);
    EXPECT_EQ(reader->release(*read.lease), ReleaseOutcome::released);
  }
  if (another) queueing.join();
  ASSERT_TRUE(read.lease) << read.reason;
  if (another) {
    ASSERT_TRUE(late.lease) << late.reason;
    EXPECT_GT(*late.lease->fencing, *read.lease->fencing);
  }
}

TEST_F(ChubbyTest, WhoSharesAfterAWriterHasAGuardAndANumberOfItsOwn) {
  for (const bool another : {false, true}) expect_reader_follows_writer(strategy_, another);
}

TEST_F(ChubbyTest, AFailureIsFollowedByTheDelayWhichALateReleaseDoesNotEnd) {
  StrategyOptions options;
  options.lock_delay = seconds(2);
  Bench bench(strategy_, options);
  Bench other(strategy_, url_of(shared_etcd().server().port()), options);
  const auto holder = bench.client();
  const auto successor = other.client();
  const AcquireResult held = acquire(*holder, bench.key(), Mode::shared);
  ASSERT_TRUE(held.lease) << held.reason;
  bench.worlds().hold_back_all();
  const LeaseState& state = *held.lease->state;
  // Until the server has ended the session: its place goes, its guard stays.
  ASSERT_TRUE(eventually([] { return shared_etcd().probe().keys().size() == 1; }));
  EXPECT_EQ(holder->release(*held.lease), ReleaseOutcome::not_owner);
  EXPECT_EQ(shared_etcd().probe().keys().size(), 1U);
  // Who shares it is not in the way of those who share it too.
  const AcquireResult shared = acquire(*successor, bench.key(), Mode::shared);
  ASSERT_TRUE(shared.lease) << shared.reason;
  successor->release(*shared.lease);
  EXPECT_EQ(acquire(*successor, bench.key(), Mode::exclusive).outcome, AcquireOutcome::refused);
  const AcquireResult next = acquire(*successor, bench.key(), Mode::exclusive, patience());
  EXPECT_TRUE(next.lease) << next.reason;
  EXPECT_GE(successor->now(), state.valid_until() + options.lock_delay);
  bench.worlds().let_go();
}

TEST_F(ChubbyTest, TheDelayIsWholeHoweverLongAfterARenewalAClientFails) {
  StrategyOptions options;
  options.lock_delay = seconds(1);
  Bench bench(strategy_, options);
  const auto holder = bench.client();
  const AcquireResult held = holder->try_once(bench.key(), seconds(4));
  ASSERT_TRUE(held.lease) << held.reason;
  // Fails right after its session was renewed: the guard must have been, too.
  const TimePoint first_end = held.lease->state->valid_until();
  ASSERT_TRUE(eventually([&] { return held.lease->state->valid_until() != first_end; }));
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
  StrategyOptions options;
  options.lock_delay = seconds(20);
  options.command_timeout = seconds(2);
  Bench bench(strategy_, *tested, options);
  const auto client = bench.client();
  const AcquireResult held = client->acquire(bench.key(), patience(), kChubbyTtl);
  ASSERT_TRUE(held.lease) << held.reason;
  const LeaseState& session = *held.lease->state;
  const auto standing = [&] {
    return etcd::standing_of(session, client->now(), options.lock_delay);
  };
  EXPECT_EQ(standing(), SessionStanding::safe);
  ASSERT_TRUE(tested->server().kill_hard());
  ASSERT_TRUE(eventually([&] { return !session.valid_at(client->now()); }));
  EXPECT_EQ(standing(), SessionStanding::jeopardy);
  AcquireResult another;
  std::thread waiting(
      [&] { another = client->acquire(bench.key() + ":other", patience(), kChubbyTtl); });
  ASSERT_TRUE(client->trace().await_waiting());
  ASSERT_TRUE(tested->server().restart(true));
  waiting.join();
  EXPECT_EQ(standing(), SessionStanding::safe);
  ASSERT_TRUE(another.lease) << another.reason;
  EXPECT_EQ(another.lease->state, held.lease->state) << "it is another session";
  EXPECT_EQ(client->release(*held.lease), ReleaseOutcome::released);
}

}  // namespace
}  // namespace lockbench::test
