#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/waiter.h"

namespace lockbench::test {
namespace {

/// A writer that waits keeps readers out for three such waits.
StrategyOptions with_writers_preferred(bool preferred, Duration wait = std::chrono::hours(1)) {
  StrategyOptions options;
  options.prefer_writers = preferred;
  options.wait = WaitPolicy::poll(wait);
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

TEST_F(ReadWrite, ALateReaderOvertakesAWriterThatWaitsUnlessWritersArePreferred) {
  for (const bool preferred : {false, true}) {
    Bench bench(strategy_, with_writers_preferred(preferred));
    const auto reader = bench.client(), late = bench.client();
    EXPECT_TRUE(ask(*reader, bench.key(), Mode::shared).lease);
    Waiter writer(bench.client(), bench.key());
    EXPECT_TRUE(writer.waits());
    EXPECT_EQ(ask(*late, bench.key(), Mode::shared).outcome,
              preferred ? AcquireOutcome::refused : AcquireOutcome::acquired);
    writer.stop();
    EXPECT_EQ(writer.join().outcome, AcquireOutcome::abandoned);
    EXPECT_TRUE(ask(*late, bench.key(), Mode::shared).lease) << "nobody waits any more";
  }
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
  Bench bench(strategy_, with_writers_preferred(true, seconds(1)));
  const auto reader = bench.client(), writer = bench.client(), late = bench.client();
  ASSERT_TRUE(ask(*reader, bench.key(), Mode::shared).lease);
  warm_up(*late, bench.key() + ":other");
  writer->faults().drop_command(2, 1000);  // nothing arrives after its first attempt
  const TimePoint asked_at = writer->now();
  EXPECT_EQ(ask(*writer, bench.key(), Mode::exclusive, patience()).outcome, AcquireOutcome::failed);
  EXPECT_TRUE(ask(*late, bench.key(), Mode::shared, patience()).lease);
  EXPECT_GE(late->now() - asked_at, milliseconds(2990)) << "3 s by the server's time of day";
}

TEST_F(ReadWrite, AReaderThatLostItsPlaceLearnsOfIt) {
  Bench bench(strategy_, unrenewed());
  const auto reader = bench.client(), other = bench.client();
  const AcquireResult kept = ask(*other, bench.key(), Mode::shared);
  const AcquireResult held = ask(*reader, bench.key(), Mode::shared);
  ASSERT_TRUE(kept.lease && held.lease);
  RedisProbe(shared_store().server().port())
      .ask({"ZREM", bench.key() + ":readers", held.lease->token});
  EXPECT_EQ(reader->lock().renew(*held.lease, kLongTtl).outcome, RenewOutcome::not_owner);
  EXPECT_TRUE(held.lease->state->lost_at());
  EXPECT_EQ(reader->release(*held.lease), ReleaseOutcome::not_owner);
  EXPECT_EQ(other->release(*kept.lease), ReleaseOutcome::released) << "each has its own";
  EXPECT_TRUE(shared_store().keys().empty());
}

}  // namespace
}  // namespace lockbench::test
