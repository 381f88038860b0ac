#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prometheus {
class Registry;
}

/// Distributed locks for a C++ program: lockbench's strategies, with metrics.
namespace lockbench::embed {

class Grant;
class Pool;

struct Settings {
  std::string strategy;  ///< its name: `lockbench list` shows all
  /// Of its servers, in the forms of docs/operations.md: several for Redlock, otherwise one.
  std::vector<std::string> urls;
  std::chrono::nanoseconds ttl = std::chrono::seconds(10);           ///< of a lock
  std::chrono::nanoseconds store_timeout = std::chrono::seconds(3);  ///< for one answer
};

enum class Outcome {
  acquired,
  taken,    ///< by another client, for as long as the caller waited
  failed,   ///< the store failed, or could not grant the lock safely; nothing was acquired
  unknown,  ///< the answer was lost: the lock may stay taken until its TTL ends
};

/// The result of one acquisition. Used by one thread at a time. After a move from it only for
/// assignment and destruction. The destructor releases the lock.
class Lock {
 public:
  Lock(Lock&& other) noexcept;
  Lock& operator=(Lock&& other) noexcept;
  ~Lock();

  Outcome outcome() const;
  /// Whether it was acquired and not released yet, even if it was lost meanwhile: see valid().
  explicit operator bool() const;
  /// One line about the latest failure, without secrets; empty if there was none.
  const std::string& reason() const;

  /// Grows with every grant of the key, if the strategy has such numbers. The protected resource
  /// refuses lower ones: only that stops a holder that lost its lock during a pause.
  std::optional<std::uint64_t> fencing() const;
  /// Whether the lock is still held, by this host's clock and all that the store has said.
  bool valid() const;

  /// Extends it to `ttl` from now. False if the lock is lost, the store failed, or the strategy
  /// renews by itself. Those that do (`lockbench list` says which) need no call.
  bool renew(std::chrono::nanoseconds ttl);
  /// False if the lock was lost before, or if the store failed; then the TTL ends it.
  bool release();

 private:
  friend class Locks;
  explicit Lock(std::unique_ptr<Grant> grant);

  std::unique_ptr<Grant> grant_;
};

/// The locks of one store, under one strategy. Thread-safe; copies share everything. Keeps as many
/// connections as locks were wanted at one time.
class Locks {
 public:
  /// Connects once, so that mistakes show early: throws std::invalid_argument for a wrong strategy
  /// or URL, and std::runtime_error if the store cannot be used. Adds to `metrics`, all with the
  /// label `strategy`:
  ///   lockbench_lock_acquire_seconds{outcome}  acquired, taken, failed, unknown
  ///   lockbench_lock_held_seconds{outcome}     released, not_owner, failed
  ///   lockbench_lock_renewals_total{outcome}   renewed, not_owner, failed
  ///   lockbench_lock_service_failures_total    of threads that renew or listen
  Locks(const Settings& settings, std::shared_ptr<prometheus::Registry> metrics);

  /// Waits for the lock, at most that long; without it, asks once. Failures are outcomes.
  Lock acquire(std::string_view key, std::chrono::nanoseconds wait = {}) const;

 private:
  std::shared_ptr<Pool> pool_;
};

}  // namespace lockbench::embed
