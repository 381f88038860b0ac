#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "loadgen/run/runner.h"

namespace lockbench::loadgen {

/// Measures the cost of renewal by the number of held locks: the throughput of other clients on the
/// same server, with and without the held and renewed locks, in alternating pairs of runs.
struct RenewalPlan {
  /// The load of the other clients, each on its own lock. The held locks have the same servers and
  /// TTL.
  RunPlan foreground;
  std::vector<std::uint64_t> held;
  int pairs = 1;
  /// Called after each number of locks with all runs so far; may be empty.
  std::function<void(const std::vector<results::Run>&)> so_far{};
};

/// The point between two renewals of a lock at which a pair of runs begins. Spread evenly over all
/// pairs, so that even a single lock is renewed as often as its period says.
constexpr double phase_of_pair(int pair, int pairs) { return (pair + 0.5) / pairs; }

/// Locks taken at equal intervals over one period. If taken together, they would be renewed
/// together, and a measurement would count one renewal of each too many or too few.
struct HeldLocksPlan {
  const Endpoints& endpoints;
  const StrategyOptions& options;
  std::string key_prefix;  ///< a number and a closing brace follow
  std::uint64_t count = 0;
  Duration ttl{};
  double phase = 0.5;  ///< from 0 to 1: of the interval between two locks; see phase_of_pair()

  /// From one renewal of a lock to the next.
  Duration period() const { return RenewalTiming{}.next(ttl); }
  /// When to take this lock, from the beginning of take().
  Duration taken_after(std::uint64_t number) const {
    const double share = (static_cast<double>(number) + phase) / static_cast<double>(count);
    return std::chrono::duration_cast<Duration>(period() * share);
  }
  std::string key(std::uint64_t number) const { return key_prefix + std::to_string(number) + "}"; }
};

/// A stop ends it early, with the numbers of locks that are complete. Held locks are released in
/// any case.
struct RenewalMeasured {
  std::vector<results::Run> runs;  ///< of the other clients, each with the locks held meanwhile
  std::string error;               ///< why not all could be measured; empty if all were
};
RenewalMeasured measure_renewal(const RenewalPlan& plan, const OnStep& on_step,
                                const std::stop_token& stop);

}  // namespace lockbench::loadgen
