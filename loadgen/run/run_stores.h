#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/fibers/pool.h"
#include "loadgen/record/certificate.h"
#include "loadgen/record/machine.h"
#include "loadgen/run/runner.h"
#include "strategies/carrier.h"
#include "strategies/store.h"

namespace lockbench::loadgen {

/// Which keys of a run were used, so that no others are removed at its end. Thread-safe.
class UsedKeys {
 public:
  explicit UsedKeys(int keys) : used_(static_cast<std::size_t>(keys)) {}

  void mark(int key) noexcept {
    std::atomic<bool>& used = used_[static_cast<std::size_t>(key)];
    // Mostly it is set: then nothing is written to memory that clients share.
    if (!used.load(std::memory_order_relaxed)) used.store(true, std::memory_order_relaxed);
  }

  /// In ascending order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t key = 0; key < used_.size(); ++key) {
      if (used_[key].load(std::memory_order_relaxed)) visit(static_cast<int>(key));
    }
  }

  bool none() const {
    return std::none_of(used_.begin(), used_.end(), [](const auto& used) { return used.load(); });
  }

 private:
  std::vector<std::atomic<bool>> used_;
};

/// What the locks of a run may have left in its stores.
struct RunKeys {
  std::string_view run_id;
  const UsedKeys& used;
  std::function<std::string(int)> name_of;
  const std::vector<std::string_view>& suffixes;  ///< of each key
};

/// The servers of a run, apart from its locks: their CPU time, their restarts, and removing the
/// run's keys. For one thread at a time.
class RunStores {
 public:
  RunStores(std::vector<std::unique_ptr<Store>> stores, Listing listing)
      : stores_(std::move(stores)), listing_(listing) {}

  /// Reads the servers' figures when the load begins.
  void begin();

  struct Usage {
    std::optional<double> cpu_seconds;  ///< nothing if a server does not report it, or restarted
    std::vector<std::string> restarts;  ///< a line for each server that restarted
    std::vector<std::string> gone;      ///< a line for each server that no longer answers
  };
  /// The difference since begin().
  Usage end();

  /// Removes them from all servers: by the run's id where they stand together, otherwise the used
  /// ones by their names. A stop ends it after the batch under way.
  tl::expected<void, std::string> remove(const RunKeys& keys, const std::stop_token& stop);

 private:
  std::vector<std::unique_ptr<Store>> stores_;
  const Listing listing_;
  std::vector<StoreResult<StoreFacts>> at_begin_;
};

/// What one run uses of this machine and of its private servers. For one thread.
class ResourceMeter {
 public:
  /// All must outlive it. `pool`: the threads of the clients; null if they run beside the runner.
  ResourceMeter(const RunPlan& plan, const Descriptor& strategy,
                const std::unique_ptr<fibers::Pool>& pool)
      : plan_(plan), strategy_(strategy), pool_(pool) {}

  /// Whether the lock or the counter is on private servers, which share this machine.
  bool has_private_servers() const;

  void load_begins() { at_begin_ = read(); }
  void load_ends() { at_end_ = read(); }
  /// No client uses a server any more.
  void drained() { when_drained_ = read(); }

  /// CPU time of the generator, the private servers and the machine during the load.
  void add_to(RunEvidence& evidence) const;
  /// CPU time of the private servers of this lock, until drained; nothing if it has none, or if
  /// they restarted.
  std::optional<double> server_cpu_seconds() const;
  /// Through proxies, until drained; nothing without them.
  std::optional<std::uint64_t> bytes() const;

 private:
  struct Reading {
    double own_cpu = 0;
    std::vector<Duration> threads{};                     ///< of the pool
    std::optional<double> private_cpu{}, servers_cpu{};  ///< of all; of this lock
    std::uint64_t bytes = 0;
    MachineReading machine;
  };
  Reading read() const;
  bool is_private(std::string_view set) const;
  bool has_only_private_servers() const;

  const RunPlan& plan_;
  const Descriptor& strategy_;
  const std::unique_ptr<fibers::Pool>& pool_;
  Reading at_begin_, at_end_, when_drained_;
};

/// A stop that comes with another one, or after some time. Where nothing can run beside the caller
/// it comes with the other one only.
class StopAfter {
 public:
  StopAfter(Duration time, const std::stop_token& other) : on_other_(other, Request{stop_}) {
    auto timer = Carrier::current().start(
        [stop = stop_, time](const std::stop_token& over) mutable {
          Carrier& carrier = Carrier::current();
          carrier.wait(nullptr, carrier.now() + time, over);
          stop.request_stop();
        },
        [](const std::string& /*why*/) {});
    if (timer) timer_ = *std::move(timer);
  }

  std::stop_token token() const { return stop_.get_token(); }

 private:
  struct Request {
    std::stop_source stop;
    void operator()() { stop.request_stop(); }
  };

  std::stop_source stop_;
  std::stop_callback<Request> on_other_;
  std::unique_ptr<Task> timer_;
};

}  // namespace lockbench::loadgen
