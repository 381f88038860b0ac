#include "tests/conformance/common/test_store.h"

#include <fmt/format.h>

#include <charconv>

#include "strategies/carrier.h"
#include "tests/conformance/redis/own_properties.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

/// Servers and clocks of time of day count in whole milliseconds.
constexpr std::chrono::milliseconds kTick{2};

class RedisTestStore : public TestStore {
 public:
  explicit RedisTestStore(testbed::Server& server)
      : server_(server), kept_(std::in_place, server.port()) {}
  explicit RedisTestStore(std::unique_ptr<testbed::Server> server)
      : own_(std::move(server)), server_(*own_) {}

  testbed::Server& server() override { return server_; }
  void clear() override { probe().ask({"FLUSHALL"}); }
  std::vector<std::string> keys() override { return probe().keys(); }
  void take_away(const std::vector<std::string>& keys) override { probe().remove(keys); }
  std::vector<std::string> staying() override {
    std::vector<std::string> staying = keys();
    std::erase_if(staying, [&](const std::string& key) { return probe().time_to_live(key); });
    return staying;
  }
  int other_connections() override { return probe().other_connections(); }
  std::unique_ptr<RedisMonitor> monitor(std::size_t /*server*/) override {
    return std::make_unique<RedisMonitor>(server_.port());
  }

  /// By the key's TTL, or by the time of day that is its value.
  std::optional<TimePoint> end_of(const std::string& key) override {
    RedisProbe& redis = probe();
    const auto left = redis.time_to_live(key);
    if (left) return Carrier::current().now() + *left + kTick;
    const std::string value = redis.ask({"TYPE", key}) == "string" ? redis.get(key) : "";
    std::int64_t expiry = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), expiry);
    constexpr std::int64_t kTimesOfDay = 1'000'000'000'000;
    if (error != std::errc() || *end != '\0' || expiry < kTimesOfDay) return std::nullopt;
    // The time of day first: a pause between the clocks then errs on the lenient side.
    const Duration remaining =
        WallTime(std::chrono::milliseconds(expiry)) - std::chrono::system_clock::now();
    return Carrier::current().now() + remaining + kTick;
  }

 private:
  /// The server may have been killed meanwhile, unless it is the shared one.
  RedisProbe& probe() {
    if (own_) kept_.emplace(server_.port());
    return *kept_;
  }

  std::unique_ptr<testbed::Server> own_;
  testbed::Server& server_;
  std::optional<RedisProbe> kept_;
};

TestStore& shared() {
  static RedisTestStore tested(shared_redis());
  return tested;
}

std::unique_ptr<TestStore> make() { return std::make_unique<RedisTestStore>(own_redis()); }

const TestedStoreRegistration registration({.name = "redis",
                                            .backends = {"redis", "local"},
                                            .shared = shared,
                                            .make = make,
                                            .properties = redis_properties});

}  // namespace

}  // namespace lockbench::test
