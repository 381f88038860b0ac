#include <gtest/gtest.h>

#include "loadgen/record/redis_counter.h"
#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"

namespace lockbench::test {
namespace {

constexpr const char* kKey = "lockbench:fenced:{0}:counter";
constexpr const char* kOther = "lockbench:fenced:{1}:counter";

class FencedCounter : public testing::Test {
 protected:
  FencedCounter() {
    auto made =
        loadgen::make_redis_counter({.connections = *connections_,
                                     .endpoint = *redis::parse_endpoint(shared_redis().url()),
                                     .env = *env_,
                                     .keys = 2,
                                     .key_name = [](int key) { return key == 0 ? kKey : kOther; },
                                     .checks_fencing = true});
    if (!made) throw std::runtime_error(made.error());
    counter_ = std::move(*made);
    session_ = counter_->open(*env_);
  }
  ~FencedCounter() override { (void)counter_->remove_keys({}); }

  loadgen::Reading read(std::optional<std::uint64_t> number) {
    const auto reading = session_->read(0, number);
    EXPECT_TRUE(reading) << reading.error();
    return reading.value_or(loadgen::Reading{});
  }
  loadgen::WriteResult write(std::uint64_t value, std::optional<std::uint64_t> number) {
    return session_->write(0, {.value = value}, number);
  }
  std::uint64_t rejections() { return counter_->totals()->rejected_stale; }

  std::unique_ptr<Env> env_ = make_system_env(1);
  std::unique_ptr<redis::ConnectionFactory> connections_ = redis::make_connection_factory();
  std::unique_ptr<loadgen::Counter> counter_;
  std::unique_ptr<loadgen::CounterSession> session_;
  RedisProbe probe_{shared_redis().port()};
};

TEST_F(FencedCounter, RejectsLowerNumbersThanWereSeenOfTheKey) {
  using enum loadgen::WriteResult;
  EXPECT_EQ(read(7).value, 0U);
  EXPECT_EQ(write(0, 7), accepted);
  EXPECT_EQ(read(7).value, 1U) << "the same holder once more";
  EXPECT_FALSE(read(9).stale);
  EXPECT_FALSE(read(10).stale) << "a successor, which registers by reading; ten is more than nine";
  EXPECT_EQ(write(1, 9), rejected_stale);
  EXPECT_TRUE(read(9).stale);
  EXPECT_EQ(probe_.get(kKey), "1");
  EXPECT_EQ(write(1, 11), accepted);
  EXPECT_TRUE(read(10).stale) << "its successor registered by writing";
  EXPECT_EQ(read(std::nullopt).value, 2U) << "without a number nothing is checked";
  EXPECT_EQ(write(2, std::nullopt), accepted);
  EXPECT_EQ(rejections(), 3U);
  EXPECT_EQ(counter_->totals()->lost, 0U);
  const auto other = session_->read(1, 9);
  ASSERT_TRUE(other) << other.error();
  EXPECT_FALSE(other->stale) << "of another key";
}

/// What the resource remembers must not be forgotten before the numbers are, nor these before it: a
/// resource that forgot 57 would accept an old 57, and numbers that began again at 1 would be
/// rejected.
TEST_F(FencedCounter, NeverForgetsAndLeavesNothingBehind) {
  const std::string fence = std::string(kKey) + ":fence";
  const auto stays = [this](const std::string& key) {
    return probe_.exists(key) && !probe_.time_to_live(key);
  };
  read(1);
  EXPECT_TRUE(stays(fence));
  EXPECT_EQ(write(0, 2), loadgen::WriteResult::accepted);
  EXPECT_TRUE(stays(fence) && stays(kKey));
  ASSERT_TRUE(counter_->remove_keys({}));
  EXPECT_FALSE(probe_.exists(fence));
  EXPECT_FALSE(probe_.exists(kKey));
}

TEST(FencingNumbers, NeverExpire) {
  RedisProbe probe(shared_redis().port());
  const std::pair<const char*, const char*> keys[] = {{"redis-fenced", ":fencing"},
                                                      {"redis-queue", ":numbers"}};
  for (const auto& [strategy, suffix] : keys) {
    HeldBench bench(seconds(10), *find_strategy(strategy), unrenewed());
    const std::string numbers = bench.key() + suffix;
    const auto stay = [&] { return probe.exists(numbers) && !probe.time_to_live(numbers); };
    EXPECT_TRUE(stay()) << strategy;
    ASSERT_EQ(bench.holder->lock().renew(bench.held, seconds(10)).outcome, RenewOutcome::renewed);
    EXPECT_TRUE(stay()) << strategy;
    bench.holder->release(bench.held);
    EXPECT_TRUE(stay()) << strategy;
  }
}

}  // namespace
}  // namespace lockbench::test
