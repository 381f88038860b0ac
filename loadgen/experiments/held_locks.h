#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "loadgen/record/histogram.h"
#include "strategies/descriptor.h"
#include "strategies/renewal.h"

namespace lockbench::loadgen {

/// What keeping locks costs, whoever renews them. Thread-safe; figures count only while recording.
class RenewalFigures : public RenewalObserver {
 public:
  struct Counts {
    std::uint64_t renewals = 0, failures = 0, lost = 0, commands = 0;
  };

  void on_renewal(const RenewalReport& report) override;
  void on_command() { add(commands_, 1); }
  /// Found out later, at the release.
  void on_lost(std::uint64_t count) { lost_.fetch_add(count); }
  void record(bool on) { recording_ = on; }

  /// Losses count at any time.
  Counts counts() const { return {renewals_, failures_, lost_, commands_}; }
  HistogramSnapshot margin() const { return margin_.snapshot(); }
  HistogramSnapshot slip() const { return slip_.snapshot(); }
  /// Why renewals failed, the latest.
  std::string failure() const;

 private:
  void add(std::atomic<std::uint64_t>& sum, std::uint64_t count) {
    if (recording_) sum.fetch_add(count, std::memory_order_relaxed);
  }

  std::atomic<bool> recording_{false};
  std::atomic<std::uint64_t> renewals_{0}, failures_{0}, lost_{0}, commands_{0};
  ShardedHistogram margin_, slip_;
  mutable std::mutex mutex_;
  std::string failure_;
};

struct HeldLocksPlan {
  const Endpoints& endpoints;
  const StrategyOptions& options;
  std::string key_prefix;  ///< a number and a brace follow
  std::uint64_t count = 0;
  Duration ttl{};

  std::string key(std::uint64_t number) const { return key_prefix + std::to_string(number) + "}"; }
};

/// Locks on keys of their own, held and renewed from take() to release(). For one thread; the plan
/// must outlive them.
class HeldLocks {
 public:
  virtual ~HeldLocks() = default;
  /// Acquires all; the error says why one could not be had.
  virtual tl::expected<void, std::string> take(const std::stop_token& stop) = 0;
  /// Gives all back; what turns out not to be held any more was lost.
  virtual void release() = 0;
};

/// All by one scheduler, as the strategies of a run have it.
std::unique_ptr<HeldLocks> hold_batched(const HeldLocksPlan& plan, RenewalFigures& figures);
/// Each by a thread and a connection of its own, as the articles describe the guard thread.
std::unique_ptr<HeldLocks> hold_by_threads(const HeldLocksPlan& plan, RenewalFigures& figures);

}  // namespace lockbench::loadgen
