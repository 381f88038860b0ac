#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "loadgen/run/fault_player.h"
#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {

/// Remembers what it was asked for; while it is struck, nobody is granted the lock.
class FakeTarget : public FaultTarget {
 public:
  using Done = tl::expected<void, std::string>;

  Done inject(const Descriptor& strategy, const Fault& fault) override {
    note(std::string(strategy.name) + " " + fault.what);
    struck = true;
    if (on_inject) on_inject();
    if (refuses) return tl::unexpected<std::string>("it would not die");
    return {};
  }
  Done heal(const Descriptor&, const Fault& fault) override {
    note("heal " + fault.what);
    struck = false;
    if (on_heal) on_heal();
    if (cannot_heal) return tl::unexpected<std::string>("it would not start");
    return {};
  }
  std::vector<std::string> calls() const {
    const std::scoped_lock lock(mutex_);
    return calls_;
  }

  std::atomic<bool> struck{false};
  bool refuses = false, cannot_heal = false;
  std::function<void()> on_inject, on_heal;

 private:
  void note(std::string call) {
    const std::scoped_lock lock(mutex_);
    calls_.push_back(std::move(call));
  }

  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
};

/// Says when faults came and went, in between the run's beginning and end.
class FaultWatcher : public RunWatcher {
 public:
  void run_begins(const RunShared&) override { note("begins"); }
  void run_ends(const RunShared&, const results::Run* result) override {
    note(result != nullptr && !result->faults.empty() ? "ends with faults" : "ends");
  }
  void fault_changes(const RunShared&, FaultKind fault, bool active) override {
    note(std::string(to_string(fault)) + (active ? " on" : " off"));
  }
  std::vector<std::string> seen() const {
    const std::scoped_lock lock(mutex_);
    return seen_;
  }

 private:
  void note(std::string what) {
    const std::scoped_lock lock(mutex_);
    seen_.push_back(std::move(what));
  }

  mutable std::mutex mutex_;
  std::vector<std::string> seen_;
};

class FaultPlayerTest : public LiveRunTest {
 protected:
  FaultPlayerTest() {
    plan_.fault_target = &target_;
    plan_.watcher = &faults_seen_;
    // In an open loop what was missed is made up for, so that throughput is back on any machine.
    plan_.workload.rate = 2000;
    plan_.workload.arrival = Arrival::constant;
    plan_.workload.duration = 1s;
  }

  void strike(const std::string& fault) { plan_.faults.push_back(parse_fault(fault).value()); }
  results::Run run_struck() { return run_one(lock_); }
  /// The run lasts as long as it takes to get that far.
  void end_with(std::function<void()>& event) {
    plan_.workload.duration = 60s;
    event = [this] { stop_.request_stop(); };
  }

  FakeTarget target_;
  FaultWatcher faults_seen_;
  const Behaviour behaviour_{
      .acquire = [this](const Context& context, const AcquireRequest& request) {
        // Ends with the fault or the run.
        while (target_.struck) {
          const TimePoint soon = context.env.now() + 1ms;
          if (context.env.wait(nullptr, soon, request.stop) == WaitResult::stopped) {
            return outcome(AcquireOutcome::abandoned);
          }
        }
        return grant(request);
      }};
  const Descriptor lock_ = scripted("lock", behaviour_);
};

}  // namespace lockbench::loadgen
