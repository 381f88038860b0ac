#pragma once

#include <cstdint>
#include <stop_token>

#include "strategies/duration.h"
#include "strategies/env.h"

namespace lockbench::watch {

/// How many commands a server may be sent: a token bucket that holds those of one second. When the
/// server answers much later than it usually does, the rate shrinks again and again, to a sixteenth
/// at least, until its answers come in time. For one thread.
class Budget {
 public:
  explicit Budget(double per_second) : full_(per_second), rate_(per_second) {}

  /// All of them, or none.
  bool spend(std::uint64_t commands, TimePoint now);
  /// Waits until so many can be spent, and spends them. False: a stop came first.
  bool spend_when_possible(std::uint64_t commands, Env& env, const std::stop_token& stop);
  /// For what must be sent, such as the first commands of a connection.
  void owe(std::uint64_t commands) { held_ -= static_cast<double>(commands); }
  /// When so many can be spent, at the present rate.
  TimePoint next(std::uint64_t commands, TimePoint now);
  /// How long the server took to answer.
  void answered(Duration latency, TimePoint now);
  /// Asks the server, and notes how long it took to answer, unless that failed.
  template <class Ask>
  auto ask(Env& env, Ask ask) {
    const TimePoint asked_at = env.now();
    auto answer = ask();
    if (const TimePoint now = env.now(); answer) answered(now - asked_at, now);
    return answer;
  }

  double rate() const { return rate_; }

 private:
  void refill(TimePoint now);

  const double full_;
  double rate_, held_ = full_;
  TimePoint filled_at_{};
  double usual_ = 0, recent_ = 0;  ///< latencies in seconds; 0: not known
  TimePoint changed_at_{};
};

}  // namespace lockbench::watch
