#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/record/recorder.h"
#include "strategies/descriptor.h"
#include "strategies/renewal_timing.h"

namespace lockbench::loadgen {

/// Records what keeping locks costs. Thread-safe.
class RenewalFigures : public StrategyObserver {
 public:
  void on_renewal(const RenewalReport& report) override { recorder_.renewal(phase_, report); }
  void on_command() { recorder_.add(phase_, Count::commands); }
  /// For losses that are found at the release.
  void on_lost(std::uint64_t count) { recorder_.add(phase_, Count::renewals_lost, count); }
  /// Figures count only while this is on, except for losses, which count at any time.
  void record(bool on) { phase_ = on ? Phase::measured : Phase::unmeasured; }

  /// `recorded`: for how many seconds they counted.
  results::Renewal renewal(double recorded) const;

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

/// Locks on different keys, held from take() to release(), and renewed by one scheduler for all, as
/// in a run. For one thread; plan and figures must outlive them.
class HeldLocks {
 public:
  HeldLocks(const HeldLocksPlan& plan, RenewalFigures& figures);
  ~HeldLocks();
  HeldLocks(const HeldLocks&) = delete;
  HeldLocks& operator=(const HeldLocks&) = delete;

  /// Acquires all in one period, or as fast as the store allows; the error says why one could not
  /// be acquired.
  tl::expected<void, std::string> take(const std::stop_token& stop);
  /// Releases all; a lock that is no longer held counts as lost.
  void release();

 private:
  struct Holder;  ///< of every kHolders-th lock

  static constexpr int kHolders = 4;

  /// The first failure, if any.
  tl::expected<void, std::string> side_by_side(
      const std::function<tl::expected<void, std::string>(Holder&)>& work);

  const HeldLocksPlan& plan_;
  RenewalFigures& figures_;
  const std::unique_ptr<Env> env_;
  Services services_;
  std::vector<std::unique_ptr<Holder>> holders_;
};

}  // namespace lockbench::loadgen
