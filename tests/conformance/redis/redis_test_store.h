#pragma once

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/carrier.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/common/test_store.h"
#include "tests/support/servers.h"

namespace lockbench::test {

/// One Redis. For one thread.
class RedisTestStore : public TestStore {
 public:
  explicit RedisTestStore(testbed::Server& server)
      : server_(&server), kept_(std::in_place, server.port()) {}
  explicit RedisTestStore(std::unique_ptr<testbed::Server> server)
      : own_(std::move(server)), server_(own_.get()) {}

  testbed::Server& server() override { return *server_; }
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
    return std::make_unique<RedisMonitor>(server().port());
  }

  /// From the key's TTL, or from the duration or time of day in its value.
  std::optional<TimePoint> end_of(const std::string& key) override {
    RedisProbe& redis = probe();
    const auto left = redis.time_to_live(key);
    if (left) return Carrier::current().now() + *left + kTick;
    const std::string value = redis.ask({"TYPE", key}) == "string" ? redis.get(key) : "";
    if (const auto end = end_of_record(value)) return *end + kTick;
    std::int64_t expiry = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), expiry);
    constexpr std::int64_t kTimesOfDay = 1'000'000'000'000;
    if (error != std::errc() || *end != '\0' || expiry < kTimesOfDay) return std::nullopt;
    // Read the time of day first, so that a pause between the clocks errs on the lenient side.
    const Duration remaining =
        WallTime(std::chrono::milliseconds(expiry)) - std::chrono::system_clock::now();
    return Carrier::current().now() + remaining + kTick;
  }

 protected:
  /// For stores that override server().
  RedisTestStore() = default;
  /// A new probe unless the server is the shared one: it may have been killed meanwhile.
  RedisProbe& probe() {
    if (own_ || server_ == nullptr) kept_.emplace(server().port());
    return *kept_;
  }

 private:
  /// Servers and wall clocks count in whole milliseconds.
  static constexpr std::chrono::milliseconds kTick{2};

  std::unique_ptr<testbed::Server> own_;
  testbed::Server* server_ = nullptr;
  std::optional<RedisProbe> kept_;
};

std::vector<Property> redis_properties();
/// Properties of renewal and notification, also for locks on a server with replicas.
std::vector<Property> service_properties();

}  // namespace lockbench::test
