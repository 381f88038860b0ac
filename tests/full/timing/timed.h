#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "strategies/registry.h"
#include "testbed/servers/server.h"
#include "tests/support/test_envs.h"

namespace lockbench::test {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr seconds kLongTtl{60};

/// One client on the thread that uses it.
struct TimedClient {
  std::unique_ptr<Env> system;
  std::unique_ptr<TracingEnv> env;
  std::unique_ptr<LockStrategy> lock;

  AcquireResult acquire(Duration longest, Duration ttl = kLongTtl, std::stop_token stop = {}) {
    return lock->acquire({.key = "lockbench:timing:{lock}",
                          .ttl = ttl,
                          .deadline = BootClock::now() + longest,
                          .stop = std::move(stop)});
  }
};

/// A strategy with its own servers. Throws std::runtime_error if they are not available.
class Timed {
 public:
  explicit Timed(const Descriptor& strategy, const StrategyOptions& options = {});
  explicit Timed(std::string_view strategy, const StrategyOptions& options = {})
      : Timed(*find_strategy(strategy), options) {}

  TimedClient client();
  void freeze();
  void thaw();

 private:
  const Descriptor& strategy_;
  const StrategyOptions options_;
  std::vector<std::unique_ptr<testbed::Server>> servers_;
  Endpoints endpoints_;
  Services services_;
  int clients_ = 0;
};

/// Runs `call` on another thread while `meanwhile` runs. Returns how long after the end of
/// `meanwhile` the call ended.
template <class Call, class Meanwhile>
Duration time_beyond(Call call, Meanwhile meanwhile) {
  TimePoint ended;
  std::thread thread([&] {
    call();
    ended = BootClock::now();
  });
  meanwhile();
  const TimePoint from = BootClock::now();
  thread.join();
  return ended - from;
}

/// Whether it took at most this time, or at least, plus an allowance for the machine. If the
/// machine stalls too long to decide, both return true and the test prints that it is inconclusive.
bool in_time(Duration taken, Duration bound);
bool is_late(Duration taken, Duration bound);

}  // namespace lockbench::test
