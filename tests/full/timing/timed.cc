#include "tests/full/timing/timed.h"

#include <atomic>
#include <iostream>
#include <optional>
#include <stdexcept>

#include "deployment/failure.h"
#include "strategies/duration.h"
#include "testbed/servers/kinds.h"
#include "tests/support/must.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

/// The worst stall, since the present test began, of a thread that only sleeps a millisecond at a
/// time.
class StallWatcher : public testing::EmptyTestEventListener {
 public:
  Duration worst() const { return worst_.load(); }
  void OnTestStart(const testing::TestInfo& /*test*/) override { worst_ = Duration::zero(); }

 private:
  void watch(const std::stop_token& stop) {
    constexpr Duration kNap = std::chrono::milliseconds(1);
    while (!stop.stop_requested()) {
      const TimePoint begun = BootClock::now();
      std::this_thread::sleep_for(kNap);
      const Duration stall = BootClock::now() - begun - kNap;
      if (stall > worst_.load()) worst_ = stall;
    }
  }

  std::atomic<Duration> worst_{Duration::zero()};
  std::jthread thread_{[this](const std::stop_token& stop) { watch(stop); }};
};

/// Exists from the start of the program; owned by GoogleTest.
StallWatcher* const watcher = [] {
  auto* const made = new StallWatcher;
  testing::UnitTest::GetInstance()->listeners().Append(made);
  return made;
}();

std::unique_ptr<testbed::Server> start(std::string_view backend) {
  using deployment::need;
  if (backend == "memcached") return need(testbed::start_memcached(shared_testbed()));
  if (backend == "postgres") return need(testbed::start_postgres(shared_testbed()));
  if (backend == "zookeeper") return need(testbed::start_zookeeper(shared_testbed()));
  if (backend == "etcd") return need(testbed::start_etcd(shared_testbed()));
  return own_redis();
}

/// Empty if the machine stalled too long to decide.
std::optional<bool> keeps(Duration taken, Duration bound) {
  constexpr Duration kTooMuch = seconds(5);
  // The allowance for a busy machine on an upper bound.
  const Duration most = seconds(1) + 4 * watcher->worst();
  if (most <= kTooMuch) return taken <= bound + most;
  std::cout << "inconclusive: the machine stood still, so that a bound is " << format_duration(most)
            << " too long\n";
  return std::nullopt;
}

}  // namespace

Timed::Timed(const Descriptor& strategy, const StrategyOptions& options)
    : strategy_(strategy), options_(options) {
  constexpr int kNodes = 5;
  std::vector<std::string> urls;
  for (int i = 0; i < (strategy.traits.nodes > 1 ? kNodes : 1); ++i) {
    servers_.push_back(start(strategy.backend));
    urls.push_back(servers_.back()->url());
  }
  endpoints_[std::string(strategy.backend)] = std::move(urls);
}

TimedClient Timed::client() {
  TimedClient client;
  client.system = make_system_env(static_cast<std::uint64_t>(++clients_));
  client.env = std::make_unique<TracingEnv>(*client.system);
  client.lock = make_strategy(strategy_, {.endpoints = endpoints_,
                                          .options = options_,
                                          .env = *client.env,
                                          .services = services_,
                                          .client = clients_});
  if (const auto connected = client.lock->connect(); !connected) {
    throw std::runtime_error(connected.error().message);
  }
  return client;
}

void Timed::freeze() {
  for (const auto& server : servers_) must(server->freeze());
}

void Timed::thaw() {
  for (const auto& server : servers_) must(server->thaw());
}

bool in_time(Duration taken, Duration bound) { return keeps(taken, bound).value_or(true); }
bool is_late(Duration taken, Duration bound) { return !keeps(taken, bound).value_or(false); }

}  // namespace lockbench::test
