#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "loadgen/record/recorder.h"
#include "strategies/descriptor.h"
#include "strategies/renewal_timing.h"

namespace lockbench::loadgen {

/// Records what keeping locks costs, however they are renewed. Thread-safe.
class RenewalFigures : public StrategyObserver {
 public:
  void on_renewal(const RenewalReport& report) override { recorder_.renewal(phase_, report); }
  void on_command() { recorder_.add(phase_, Count::commands); }
  /// For losses that are found at the release.
  void on_lost(std::uint64_t count) { recorder_.add(phase_, Count::renewals_lost, count); }
  /// Figures count only while this is on, except for losses, which count at any time.
  void record(bool on) { phase_ = on ? Phase::measured : Phase::unmeasured; }

  Counts measured() const { return recorder_.totals(Phase::measured); }
  std::uint64_t lost() const { return recorder_.totals()[Count::renewals_lost]; }
  HistogramSnapshot timing(Timing what) const {
    return recorder_.histograms(Phase::measured)[what].snapshot();
  }

 private:
  std::atomic<Phase> phase_{Phase::unmeasured};
  Recorder recorder_{0};
};

/// Where a pair of runs begins between two renewals of a lock: spread evenly over all pairs, so
/// that even a single lock is renewed as often as its period says.
constexpr double phase_of_pair(int pair, int pairs) { return (pair + 0.5) / pairs; }

/// Locks that were taken all at once would be renewed all at once, and a measurement would count
/// one renewal of each too many or too few. So they are taken at equal intervals over one period.
struct HeldLocksPlan {
  const Endpoints& endpoints;
  const StrategyOptions& options;
  std::string key_prefix;  ///< a number and a closing brace follow
  std::uint64_t count = 0;
  Duration ttl{};
  double phase = 0.5;  ///< from 0 to 1: of the interval between two locks; see phase_of_pair()

  /// From one renewal of a lock to the next.
  Duration period() const { return RenewalTiming{}.next(ttl); }
  /// When to take this lock, since take() began.
  Duration taken_after(std::uint64_t number) const {
    const double share = (static_cast<double>(number) + phase) / static_cast<double>(count);
    return std::chrono::duration_cast<Duration>(period() * share);
  }
  std::string key(std::uint64_t number) const { return key_prefix + std::to_string(number) + "}"; }
};

/// Locks on different keys, held and renewed from take() to release(). For one thread; the plan
/// must outlive them.
class HeldLocks {
 public:
  virtual ~HeldLocks() = default;
  /// Acquires all, in one period or as fast as the store allows; the error says why one could not
  /// be acquired.
  virtual tl::expected<void, std::string> take(const std::stop_token& stop) = 0;
  /// Releases all; a lock that is no longer held counts as lost.
  virtual void release() = 0;
};

/// Renewed by one scheduler for all locks, as in a run.
std::unique_ptr<HeldLocks> hold_batched(const HeldLocksPlan& plan, RenewalFigures& figures);
/// Each renewed by its own thread and connection: the guard thread of the articles.
std::unique_ptr<HeldLocks> hold_by_threads(const HeldLocksPlan& plan, RenewalFigures& figures);

}  // namespace lockbench::loadgen
