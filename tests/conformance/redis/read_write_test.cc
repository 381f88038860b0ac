#include <gtest/gtest.h>

#include <thread>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"

namespace lockbench::test {
namespace {

StrategyOptions with_writers_preferred(bool preferred) {
  StrategyOptions options;
  options.prefer_writers = preferred;
  return options;
}

/// redis-read-write: what is not asked of every lock with a shared mode.
class ReadWrite : public testing::Test {
 protected:
  static AcquireResult ask(Client& client, const std::string& key, Mode mode,
                           Duration patience = {}, Duration ttl = kLongTtl) {
    return client.lock().acquire(
        {.key = key, .ttl = ttl, .deadline = client.now() + patience, .mode = mode, .stop = {}});
  }

  const Descriptor& strategy_ = *find_strategy("redis-read-write");
};

/// What a reader that comes while a writer waits for another reader gets. The writer has waited
/// for as long as its first attempt keeps readers out.
AcquireOutcome outcome_of_late_reader(const Descriptor& strategy, bool writers_preferred) {
  Bench bench(strategy, with_writers_preferred(writers_preferred));
  const auto reader = bench.client(), writer = bench.client(), late = bench.client();
  const auto acquire = [&](Client& client, Mode mode, Duration patience = {}) {
    return client.lock().acquire({.key = bench.key(),
                                  .ttl = kLongTtl,
                                  .deadline = client.now() + patience,
                                  .mode = mode,
                                  .stop = {}});
  };
  const AcquireResult held = acquire(*reader, Mode::shared);
  AcquireResult written;
  std::thread waiting([&] { written = acquire(*writer, Mode::exclusive, seconds(20)); });
  EXPECT_TRUE(writer->trace().await_waiting(seconds(5)));
  std::this_thread::sleep_for(milliseconds(400));
  const AcquireResult read = acquire(*late, Mode::shared);
  if (read.lease) late->release(*read.lease);
  if (held.lease) reader->release(*held.lease);
  waiting.join();
  EXPECT_TRUE(written.lease) << written.reason;
  if (written.lease) writer->release(*written.lease);
  EXPECT_TRUE(acquire(*late, Mode::shared).lease) << "nobody waits any more";
  return read.outcome;
}

TEST_F(ReadWrite, ALateReaderOvertakesAWriterThatWaitsUnlessWritersArePreferred) {
  EXPECT_EQ(outcome_of_late_reader(strategy_, false), AcquireOutcome::acquired);
  EXPECT_EQ(outcome_of_late_reader(strategy_, true), AcquireOutcome::refused);
}

TEST_F(ReadWrite, AWriterThatGivesUpKeepsNobodyOut) {
  Bench bench(strategy_, with_writers_preferred(true));
  const auto reader = bench.client(), writer = bench.client(), late = bench.client();
  const AcquireResult held = ask(*reader, bench.key(), Mode::shared);
  ASSERT_TRUE(held.lease) << held.reason;
  EXPECT_EQ(ask(*writer, bench.key(), Mode::exclusive).outcome, AcquireOutcome::refused);
  EXPECT_TRUE(ask(*late, bench.key(), Mode::shared).lease) << "a writer that does not wait";
  EXPECT_EQ(ask(*writer, bench.key(), Mode::exclusive, milliseconds(20)).outcome,
            AcquireOutcome::timed_out);
  EXPECT_TRUE(ask(*late, bench.key(), Mode::shared).lease);
}

TEST_F(ReadWrite, AWriterThatDiedWhileItWaitedKeepsReadersOutForALittleWhile) {
  Bench bench(strategy_, with_writers_preferred(true));
  const auto reader = bench.client(), writer = bench.client(), late = bench.client();
  ASSERT_TRUE(ask(*reader, bench.key(), Mode::shared).lease);
  warm_up(*late, bench.key() + ":other");
  writer->faults().drop_command(2, 1000);  // nothing arrives after its first attempt
  EXPECT_EQ(ask(*writer, bench.key(), Mode::exclusive, seconds(5)).outcome, AcquireOutcome::failed);
  const TimePoint died_at = late->now();
  EXPECT_EQ(ask(*late, bench.key(), Mode::shared).outcome, AcquireOutcome::refused);
  EXPECT_TRUE(ask(*late, bench.key(), Mode::shared, seconds(20)).lease);
  EXPECT_LE(late->now() - died_at, milliseconds(300) + kSlack);
}

TEST_F(ReadWrite, AReaderIsRenewedByItself) {
  constexpr milliseconds kTtl{600};
  Bench bench(strategy_);
  const auto reader = bench.client(), writer = bench.client();
  const AcquireResult held = ask(*reader, bench.key(), Mode::shared, {}, kTtl);
  ASSERT_TRUE(held.lease) << held.reason;
  EXPECT_EQ(ask(*writer, bench.key(), Mode::exclusive, 3 * kTtl).outcome,
            AcquireOutcome::timed_out);
  EXPECT_TRUE(held.lease->state->valid_at(reader->now()));
  EXPECT_EQ(reader->release(*held.lease), ReleaseOutcome::released);
  EXPECT_TRUE(ask(*writer, bench.key(), Mode::exclusive).lease);
}

TEST_F(ReadWrite, AReaderThatLostItsPlaceLearnsOfIt) {
  Bench bench(strategy_, unrenewed());
  const auto reader = bench.client(), other = bench.client();
  const AcquireResult kept = ask(*other, bench.key(), Mode::shared);
  const AcquireResult held = ask(*reader, bench.key(), Mode::shared, {}, milliseconds(250));
  ASSERT_TRUE(kept.lease && held.lease);
  EXPECT_TRUE(eventually([&] { return !held.lease->state->valid_at(reader->now()); }));
  std::this_thread::sleep_for(milliseconds(20));  // the server began later
  EXPECT_EQ(reader->lock().renew(*held.lease, kLongTtl).outcome, RenewOutcome::not_owner);
  EXPECT_TRUE(held.lease->state->lost_at());
  EXPECT_EQ(reader->release(*held.lease), ReleaseOutcome::not_owner);
  EXPECT_EQ(other->release(*kept.lease), ReleaseOutcome::released) << "each has its own";
  EXPECT_TRUE(shared_store().keys().empty());
}

}  // namespace
}  // namespace lockbench::test
