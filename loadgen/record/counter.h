#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/record/memory.h"
#include "strategies/env.h"

namespace lockbench::loadgen {

struct Reading {
  std::uint64_t value = 0;
  bool stale = false;  ///< refused: the resource has seen a higher fencing number
};

enum class WriteResult {
  accepted,
  rejected_stale,  ///< the resource has seen a higher fencing number
  unknown,         ///< the answer was lost: it may have taken effect
  failed,          ///< it took no effect
};

/// Sums over all keys since the counter was made.
struct CounterTotals {
  std::uint64_t accepted = 0;        ///< writes
  std::uint64_t rejected_stale = 0;  ///< reads and writes
  std::uint64_t moved = 0;           ///< growth of the counters: final minus initial
  std::uint64_t lost = 0;            ///< accepted writes missing from that growth
  std::uint64_t lost_max = 0;        ///< the same if every unknown write took effect
};

/// One client's access to the counters, with its own connection; used on that client's thread. Must
/// not outlive its Counter. Keys from 0.
class CounterSession {
 public:
  virtual ~CounterSession() = default;
  /// Connects, so that no section has to.
  virtual tl::expected<void, std::string> connect() { return {}; }
  /// A resource that checks fencing numbers registers the reader's number, if any, and counts a
  /// stale read as a rejection. The error is one line that names the endpoint, never a secret.
  virtual tl::expected<Reading, std::string> read(int key,
                                                  std::optional<std::uint64_t> fencing) = 0;
  /// Writes the reading plus one: an update that only the lock protects.
  virtual WriteResult write(int key, const Reading& reading,
                            std::optional<std::uint64_t> fencing) = 0;
};

/// One process's knowledge of a key's counter.
struct CounterTally {
  int key = 0;
  std::uint64_t accepted = 0, rejected_stale = 0, unknown = 0;
  std::uint64_t initial = 0;  ///< plus 1; 0 if unknown
  std::uint64_t highest = 0;  ///< lower bound of the highest written value
  bool stored = false;        ///< a store may hold it
  bool operator==(const CounterTally&) const = default;
};

/// The writes to one key. Kept per key, so that an unknown write to one counter does not hide a
/// lost write on another. Thread-safe.
struct alignas(kCacheLine) KeyWrites {
  std::atomic<std::uint64_t> accepted{0}, rejected_stale{0}, unknown{0};
  /// The counter's value. If a store holds it: its initial value plus 1, or 0 if unknown.
  std::atomic<std::uint64_t> value{0};
  std::atomic<bool> stored{false};  ///< a store may hold it
  std::atomic<std::uint64_t> highest{0};

  CounterTally tally(int key) const noexcept;
  void add(const CounterTally& tally) noexcept;
  /// Counts a write, unless it failed, and returns its result.
  WriteResult note(WriteResult result) noexcept;
  void add_to(CounterTotals& totals, std::uint64_t moved) const noexcept;
};

/// The protected resource, one number per key, and the check on it: acknowledged increments
/// compared with the growth of the numbers. One per run.
class Counter {
 public:
  explicit Counter(int keys) : keys_(keys) {}
  virtual ~Counter() = default;
  /// Thread-safe. `env` must outlive the session.
  virtual std::unique_ptr<CounterSession> open(Env& env) = 0;
  /// For each used key. Thread-safe.
  std::vector<CounterTally> tallies() const;
  /// Counts a write that was made without a session, and returns its result. Thread-safe.
  WriteResult note(int key, WriteResult result) noexcept { return keys_[key].note(result); }
  /// Adds the writes of another process to the same counters. Thread-safe.
  void add(const CounterTally& tally) { keys_[tally.key].add(tally); }
  /// Exact when no write is under way. Call only on the thread that made the counter.
  virtual tl::expected<CounterTotals, std::string> totals() = 0;
  /// Removes everything written to the store. A stop ends it after the batch under way, with an
  /// error. Call it on the thread of totals().
  virtual tl::expected<void, std::string> remove_keys(const std::stop_token& /*stop*/) {
    return {};
  }

 protected:
  PerKey<KeyWrites> keys_;
};

/// Counts only writes that other processes report, and trusts the reports. Finds fewer lost updates
/// if the last writes are unknown.
std::unique_ptr<Counter> make_reported_counter(int keys);

/// The numbers of a control without a lock, which writes them in its store itself: only noted here.
/// They begin at 0. `read` returns a key's number.
std::unique_ptr<Counter> make_updated_counter(
    int keys, std::function<tl::expected<std::uint64_t, std::string>(int key)> read);

/// In this process's memory, starting at 0. `keys` is at least 1.
std::unique_ptr<Counter> make_memory_counter(int keys);

}  // namespace lockbench::loadgen
