#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/conformance/common/waiter.h"

namespace lockbench::test {
namespace {

/// A writer that waits keeps readers out for three such waits.
StrategyOptions with_writers_preferred(bool preferred, Duration wait = std::chrono::hours(1)) {
  return {.wait = WaitPolicy::poll(wait), .prefer_writers = preferred};
}

/// redis-read-write: what is not asked of every lock with a shared mode.
class ReadWrite : public testing::Test {
 protected:
  const Descriptor& strategy_ = *find_strategy("redis-read-write");
};

TEST_F(ReadWrite, ALateReaderOvertakesAWriterThatWaitsUnlessWritersArePreferred) {
  for (const bool preferred : {false, true}) {
    Bench bench(strategy_, with_writers_preferred(preferred));
    const auto reader = bench.client(), late = bench.client();
    EXPECT_TRUE(reader->share(bench.key()).lease);
    Waiter writer(bench.client(), bench.key());
    EXPECT_TRUE(writer.waits());
    EXPECT_EQ(late->share(bench.key()).outcome,
              preferred ? AcquireOutcome::refused : AcquireOutcome::acquired);
    writer.stop();
    EXPECT_EQ(writer.join().outcome, AcquireOutcome::abandoned);
    EXPECT_TRUE(late->share(bench.key()).lease) << "nobody waits any more";
  }
}

TEST_F(ReadWrite, AWriterThatGivesUpKeepsNobodyOut) {
  Bench bench(strategy_, with_writers_preferred(true));
  const auto reader = bench.client(), writer = bench.client(), late = bench.client();
  const Lease held = granted(reader->share(bench.key()));
  EXPECT_EQ(writer->try_once(bench.key()).outcome, AcquireOutcome::refused);
  EXPECT_TRUE(late->share(bench.key()).lease) << "a writer that does not wait";
  EXPECT_EQ(writer->acquire(bench.key(), milliseconds(20)).outcome, AcquireOutcome::timed_out);
  EXPECT_TRUE(late->share(bench.key()).lease);
}

TEST_F(ReadWrite, AWriterThatDiedWhileItWaitedKeepsReadersOutForALittleWhile) {
  Bench bench(strategy_, with_writers_preferred(true, seconds(1)));
  const auto reader = bench.client(), writer = bench.client(), late = bench.client();
  ASSERT_TRUE(reader->share(bench.key()).lease);
  warm_up(*late, bench.key() + ":other");
  writer->faults().drop_command(2, 1000);  // nothing arrives after its first attempt
  const TimePoint asked_at = writer->now();
  EXPECT_EQ(writer->acquire(bench.key(), patience()).outcome, AcquireOutcome::failed);
  EXPECT_TRUE(late->share(bench.key(), patience()).lease);
  EXPECT_GE(late->now() - asked_at, milliseconds(2990)) << "3 s by the server's time of day";
}

TEST_F(ReadWrite, AReaderThatLostItsPlaceLearnsOfIt) {
  Bench bench(strategy_, unrenewed());
  const auto reader = bench.client(), other = bench.client();
  const Lease kept = granted(other->share(bench.key())), held = granted(reader->share(bench.key()));
  RedisProbe(shared_store().server().port()).ask({"ZREM", bench.key() + ":readers", held.token});
  EXPECT_EQ(reader->lock().renew(held, kLongTtl).outcome, RenewOutcome::not_owner);
  EXPECT_TRUE(held.state->lost_at());
  EXPECT_EQ(reader->release(held), ReleaseOutcome::not_owner);
  EXPECT_EQ(other->release(kept), ReleaseOutcome::released) << "each has its own";
  EXPECT_TRUE(shared_store().keys().empty());
}

}  // namespace
}  // namespace lockbench::test
