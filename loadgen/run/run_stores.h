#pragma once

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "loadgen/run/worker.h"
#include "strategies/programs/program.h"
#include "strategies/store.h"

namespace lockbench::loadgen {

/// The servers of a run, apart from its locks: their CPU time, their restarts, and removing the
/// run's keys. For one thread at a time.
class RunStores {
 public:
  RunStores(const RunPlan& plan, const Descriptor& strategy)
      : stores_(make_stores(strategy, plan.endpoints, plan.workload.strategy.command_timeout)) {
    const StoreKind* const redis = find_store_kind("redis");
    if (plan.workload.resource == Resource::memory || redis == nullptr) return;
    if (!redis->display(plan.counter_url)) return;  // making the counter says why
    counter_ = redis->make(plan.counter_url, plan.workload.strategy.command_timeout);
  }

  /// Notes the keys of a run, those of its counter included, before the first of them is written.
  /// Returns the first failure; the other stores have noted them.
  StoreResult<void> begin_keys(std::string_view prefix, WallTime until,
                               const std::stop_token& stop) {
    StoreResult<void> all;
    const auto begin = [&](Store& store) {
      auto noted = store.begin_keys(prefix, until, stop);
      if (noted) noted_.push_back(&store);
      if (!noted && all) all = std::move(noted);
    };
    for (const auto& store : stores_) begin(*store);
    if (counter_) begin(*counter_);
    return all;
  }
  /// To be called when they are removed.
  StoreResult<void> end_keys(std::string_view prefix, const std::stop_token& stop) {
    return in_noted([&](Store& store) { return store.end_keys(prefix, stop); });
  }
  /// Removes what killed runs left where this one has noted its keys.
  StoreResult<void> remove_old_runs(const std::stop_token& stop) {
    return in_noted([&](Store& store) { return store.remove_old_runs(stop); });
  }

  /// Reads the servers' figures when the load begins.
  void begin() {
    at_begin_.clear();
    for (const auto& store : stores_) at_begin_.push_back(store->facts());
  }

  struct Usage {
    std::optional<double> cpu_seconds;  ///< nothing if a server does not report it, or restarted
    std::optional<double> commands;     ///< executed, likewise
    std::vector<std::string> restarts;  ///< a line for each server that restarted
    std::vector<std::string> gone;      ///< a line for each server that no longer answers
  };
  /// The difference since begin().
  Usage end() {
    Usage usage;
    double cpu_seconds = 0, commands = 0;
    bool complete = !stores_.empty(), counted = complete;
    for (std::size_t i = 0; i < at_begin_.size(); ++i) {
      const StoreResult<StoreFacts>& before = at_begin_[i];
      if (!before) {  // no permission to ask
        complete = counted = false;
        continue;
      }
      const StoreResult<StoreFacts> after = stores_[i]->facts();
      if (after && before->instance == after->instance) {
        complete = complete && after->cpu_seconds && before->cpu_seconds;
        cpu_seconds += after->cpu_seconds.value_or(0) - before->cpu_seconds.value_or(0);
        counted = counted && after->commands && before->commands;
        commands += after->commands.value_or(0) - before->commands.value_or(0);
        continue;
      }
      complete = counted = false;
      if (after) {
        usage.restarts.push_back(stores_[i]->display() + " restarted during the run");
      } else {
        usage.gone.push_back(stores_[i]->display() + " did not answer after the run");
      }
    }
    if (complete) usage.cpu_seconds = cpu_seconds;
    if (counted) usage.commands = commands;
    return usage;
  }

  /// Removes the locks' keys from all servers: by the run's id if its keys are adjacent, or if a
  /// client program's library has keys of its own beside them; otherwise the used keys by name. A
  /// stop ends it after the batch under way.
  tl::expected<void, std::string> remove(const RunShared& run, std::string_view run_id,
                                         const std::stop_token& stop) {
    // After a failure a server gets no more requests; the others are still cleaned.
    std::vector<bool> failed(stores_.size(), false);
    tl::expected<void, std::string> first_failure;
    const auto from_all = [&](auto&& removal) {
      for (std::size_t store = 0; store < stores_.size(); ++store) {
        if (failed[store]) continue;
        const StoreResult<std::size_t> removed = removal(*stores_[store]);
        failed[store] = !removed;
        if (!removed && first_failure) first_failure = tl::unexpected(removed.error().message);
      }
    };
    const StoreKind* const kind = find_store_kind(run.strategy.backend);
    const Listing listing = kind == nullptr ? Listing::none : kind->listing;
    const bool scans = listing == Listing::by_scan && !run.strategy.program.empty();
    if (scans || listing == Listing::by_prefix) {
      from_all([&](Store& store) { return store.remove_run(run_id, stop); });
      return first_failure;
    }
    // Bounds memory: a run may have millions of keys.
    constexpr std::size_t kKeysAtOnce = 10'000;
    std::vector<std::string> batch;
    const auto remove_batch = [&] {
      from_all([&](Store& store) { return store.remove_keys(batch, stop); });
      batch.clear();
    };
    run.used.for_each([&](int key) {
      for (const std::string_view suffix : run.strategy.key_suffixes) {
        batch.push_back(run.key(key) + std::string(suffix));
      }
      if (batch.size() >= kKeysAtOnce) remove_batch();
    });
    if (!batch.empty()) remove_batch();
    return first_failure;
  }

 private:
  /// Returns the first failure.
  template <class Call>
  StoreResult<void> in_noted(const Call& call) {
    StoreResult<void> all;
    for (Store* const store : noted_) {
      auto done = call(*store);
      if (!done && all) all = std::move(done);
    }
    return all;
  }

  const std::vector<std::unique_ptr<Store>> stores_;
  std::unique_ptr<Store> counter_;  ///< of the counter; null if it is in memory
  std::vector<Store*> noted_;       ///< those that have noted the run's keys
  std::vector<StoreResult<StoreFacts>> at_begin_;
};

/// A run's use of this machine and of its private servers. For one thread.
class ResourceMeter {
 public:
  /// All must outlive it.
  ResourceMeter(const RunPlan& plan, RunShared& run)
      : plan_(plan), run_(run), strategy_(run.strategy) {}

  /// Whether the lock or the counter is on private servers, which share this machine.
  bool has_private_servers() const {
    const bool counts_there = plan_.workload.resource != Resource::memory;
    return is_private(server_set(strategy_)) || (counts_there && is_private("counter"));
  }

  void load_begins() { at_begin_ = read(); }
  void load_ends() { at_end_ = read(); }
  /// Call it when no client uses a server any more.
  void drained() { when_drained_ = read(); }

  /// CPU time of the generator, the private servers and the machine during the load.
  void add_to(RunEvidence& evidence) const {
    evidence.cpu_seconds = at_end_.own_cpu - at_begin_.own_cpu;
    evidence.private_cpu_seconds = difference(at_end_.private_cpu, at_begin_.private_cpu);
    evidence.machine.cpu = difference(at_end_.machine.cpu, at_begin_.machine.cpu);
    evidence.machine.pressure_seconds =
        difference(at_end_.machine.pressure_seconds, at_begin_.machine.pressure_seconds);
    evidence.machine.throttled_seconds =
        difference(at_end_.machine.throttled_seconds, at_begin_.machine.throttled_seconds);
    for (std::size_t i = 0; i < at_end_.threads.size(); ++i) {
      evidence.busiest_thread_seconds =
          std::max(evidence.busiest_thread_seconds.value_or(0),
                   seconds(at_end_.threads[i] - at_begin_.threads.at(i)));
    }
  }
  /// CPU time of the private servers of this lock, until drained; nothing if it has none, or if
  /// they restarted.
  std::optional<double> server_cpu_seconds() const {
    // A restarted server counts from zero again.
    if (restarts_servers(plan_.faults)) return std::nullopt;
    return difference(when_drained_.servers_cpu, at_begin_.servers_cpu);
  }
  /// Through proxies, until drained; nothing without them.
  std::optional<std::uint64_t> bytes() const {
    if (!plan_.bytes_moved) return std::nullopt;
    return when_drained_.bytes - at_begin_.bytes;
  }

 private:
  /// Of this process so far.
  static double own_cpu_seconds() {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
  }
  /// Nothing unless both are known.
  template <class T>
  static std::optional<T> difference(const std::optional<T>& later,
                                     const std::optional<T>& earlier) {
    if (!later || !earlier) return std::nullopt;
    return *later - *earlier;
  }
  struct Reading {
    double own_cpu = 0;
    std::vector<Duration> threads{};                     ///< of the pool
    std::optional<double> private_cpu{}, servers_cpu{};  ///< of all; of this lock
    std::uint64_t bytes = 0;
    MachineReading machine;
  };
  Reading read() const {
    Reading reading{.own_cpu = own_cpu_seconds(), .machine = plan_.machine()};
    if (plan_.private_cpu.of) reading.servers_cpu = plan_.private_cpu.of(server_set(strategy_));
    if (plan_.bytes_moved) reading.bytes = plan_.bytes_moved();
    for (int i = 0; run_.threads && i < run_.threads->threads(); ++i) {
      reading.threads.push_back(run_.threads->cpu_time(i));
    }
    // All servers, as other locks' servers run too.
    if (has_only_private_servers()) {
      reading.private_cpu = plan_.private_cpu.all ? plan_.private_cpu.all() : 0;
      // A client program is no other program either.
      if (!strategy_.program.empty()) {
        const auto& fleet = run_.services.get<program::Fleet>();
        *reading.private_cpu += fleet.cpu_seconds(plan_.private_cpu.of_tree);
      }
    }
    return reading;
  }
  bool is_private(std::string_view set) const {
    return plan_.private_cpu.of && plan_.private_cpu.of(set).has_value();
  }
  bool has_only_private_servers() const {
    const bool counts_there = plan_.workload.resource != Resource::memory;
    return (urls_of(strategy_, plan_.endpoints).empty() || is_private(server_set(strategy_))) &&
           (!counts_there || is_private("counter"));
  }

  const RunPlan& plan_;
  RunShared& run_;
  const Descriptor& strategy_;
  Reading at_begin_, at_end_, when_drained_;
};

/// Stops when the other token does, or after a timeout. If no task can be started, without the
/// timeout.
class StopAfter {
 public:
  StopAfter(Duration time, const std::stop_token& other)
      : on_other_(other, [stop = stop_]() mutable { stop.request_stop(); }) {
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
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> on_other_;
  std::unique_ptr<Task> timer_;
};

}  // namespace lockbench::loadgen
