#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/record/cache_line.h"
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
  std::uint64_t accepted = 0, unknown = 0, failed = 0;  ///< writes
  std::uint64_t rejected_stale = 0;                     ///< readings and writes
  std::uint64_t moved = 0;     ///< how far the counters really went: final less initial
  std::uint64_t lost = 0;      ///< accepted writes that left no trace
  std::uint64_t lost_max = 0;  ///< the same if every unknown write took effect
};

/// One client's way to the counters, with a connection of its own; used on that client's thread.
/// Must not outlive its Counter. Keys from 0.
class CounterSession {
 public:
  virtual ~CounterSession() = default;
  /// Reaches the store, so that the first read inside a section need not.
  virtual tl::expected<void, std::string> connect() { return {}; }
  /// A resource that checks fencing numbers registers the reader's, if there is one, and counts a
  /// stale reading as a rejection. The error is one line that names the endpoint, never a secret.
  virtual tl::expected<Reading, std::string> read(int key,
                                                  std::optional<std::uint64_t> fencing) = 0;
  /// Puts the reading plus one in its place: an update that only the lock protects.
  virtual WriteResult write(int key, const Reading& reading,
                            std::optional<std::uint64_t> fencing) = 0;
};

/// The protected resource, one number per key, and the oracle over it: increments that clients were
/// told of against how far the numbers went. One per run.
class Counter {
 public:
  virtual ~Counter() = default;
  /// Thread-safe. `env` must outlive the session.
  virtual std::unique_ptr<CounterSession> open(Env& env) = 0;
  /// Exact once no write is under way. One thread at a time, the one that made the counter.
  virtual tl::expected<CounterTotals, std::string> totals() = 0;
  /// Leaves nothing behind in the store. On the same thread as totals().
  virtual tl::expected<void, std::string> remove_keys() { return {}; }
};

/// In this process's memory, from 0: for clients that are threads. `keys` is at least 1.
std::unique_ptr<Counter> make_memory_counter(int keys);

/// One key's book of writes. Kept per key: an unknown write that moved one counter must not make up
/// for one that was lost on another. Thread-safe.
struct alignas(kCacheLine) CounterBook {
  std::atomic<std::uint64_t> accepted{0}, rejected_stale{0}, unknown{0}, failed{0};
  std::atomic<std::uint64_t> value{
      0};  ///< the number itself, or where it began if it lives elsewhere

  /// Counts a write and passes its result on.
  WriteResult note(WriteResult result) noexcept;
  void add_to(CounterTotals& totals, std::uint64_t moved) const noexcept;
};

}  // namespace lockbench::loadgen
