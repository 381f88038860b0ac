#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "loadgen/run/live_run.h"
#include "strategies/registry.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/virtual_time.h"

// Shared by the tests of whole runs.
namespace lockbench::loadgen {

using namespace std::chrono_literals;

/// The behaviour of a test lock. Everything runs on the client's carrier.
struct Behaviour {
  std::function<AcquireResult(const Context&, const AcquireRequest&)> acquire;
  std::function<ReleaseResult(const Lease&)> release = [](const Lease&) {
    return ReleaseResult{ReleaseOutcome::released, {}};
  };
  std::function<StoreResult<void>(const Context&)> connect = [](const Context&) {
    return StoreResult<void>();
  };
};

class ScriptedLock : public LockStrategy {
 public:
  ScriptedLock(const Context& context, const Behaviour& behaviour)
      : context_(context), behaviour_(behaviour) {}

  StoreResult<void> connect() override { return behaviour_.connect(context_); }
  AcquireResult acquire(const AcquireRequest& request) override {
    return behaviour_.acquire(context_, request);
  }
  ReleaseResult release(const Lease& lease) override { return behaviour_.release(lease); }
  RenewResult renew(const Lease&, Duration) override { return {RenewOutcome::unsupported, {}}; }

 private:
  const Context context_;
  const Behaviour& behaviour_;
};

/// A lock that declares exclusion, kept or not. `behaviour` must outlive the descriptor.
inline Descriptor scripted(std::string_view name, const Behaviour& behaviour) {
  return {.name = name, .backend = "local", .make = [&behaviour](const Context& context) {
            return std::make_unique<ScriptedLock>(context, behaviour);
          }};
}

inline AcquireResult grant(const AcquireRequest& request) {
  AcquireResult result;
  result.outcome = AcquireOutcome::acquired;
  result.attempts = 1;
  result.lease = Lease{.key = std::string(request.key),
                       .mode = request.mode,
                       .state = std::make_shared<LeaseState>(TimePoint::max())};
  return result;
}

inline AcquireResult outcome(AcquireOutcome what, std::string reason = {}) {
  AcquireResult result;
  result.outcome = what;
  result.attempts = 1;
  result.reason = std::move(reason);
  return result;
}

/// Waits until the deadline or a stop, without a grant.
inline AcquireResult wait_in_vain(const Context& context, const AcquireRequest& request) {
  const WaitResult waited = context.env.wait(nullptr, request.deadline, request.stop);
  return outcome(waited == WaitResult::stopped ? AcquireOutcome::abandoned
                                               : AcquireOutcome::timed_out);
}

/// Lets every client in.
inline const Behaviour leaky{
    .acquire = [](const Context&, const AcquireRequest& request) { return grant(request); }};
inline const Descriptor leaky_lock = scripted("leaky", leaky);

class Watcher : public ProgressObserver {
 public:
  void on_progress(const Progress& progress) override {
    phases.push_back(progress.phase);
    done.push_back(progress.done);
    rates.push_back(progress.sections_per_second);
    runs.insert(progress.run);
  }
  void on_warning(const std::string& line) override { warnings.push_back(line); }

  std::vector<Progress::Phase> phases;
  std::vector<double> done;  ///< of its phase
  std::vector<double> rates;
  std::set<int> runs;
  std::vector<std::string> warnings;
};

inline std::uint64_t sections_of(const std::vector<results::SeriesPoint>& series) {
  return std::accumulate(
      series.begin(), series.end(), std::uint64_t{0},
      [](std::uint64_t sum, const results::SeriesPoint& point) { return sum + point.sections; });
}

/// Runs on virtual time, on one thread: figures are exact, and a minute takes a moment.
class LiveRunTest : public testing::Test {
 protected:
  LiveRunTest() {
    plan_.run_id = "test";
    // Other programs on the test machine must not count.
    plan_.machine = [] { return MachineReading{}; };
    // These tests do not need enough contended grants.
    plan_.workload = {.clients = 4, .duration = 150ms, .warmup = 0ms, .contended_grants = 0};
  }

  RunReport run(std::vector<const Descriptor*> strategies) {
    plan_.strategies = std::move(strategies);
    RunReport report;
    const auto play = [&] { report = run_plans({&plan_, 1}, watcher_, stop_.get_token()); };
    if (real_time_) {
      play();
    } else {
      test::on_virtual_time(play);
    }
    return report;
  }

  /// Expects that the run starts.
  results::Run run_one(const Descriptor& strategy) {
    RunReport report = run({&strategy});
    EXPECT_TRUE(report.not_started.empty()) << report.not_started.at(0).reason;
    if (report.runs.size() != 1) throw std::runtime_error("not one run");
    return std::move(report.runs[0]);
  }
  results::Run run_one(const Behaviour& behaviour) {
    return run_one(scripted("scripted", behaviour));
  }
  RunReport run(const Behaviour& behaviour) {
    const Descriptor strategy = scripted("scripted", behaviour);
    return run({&strategy});
  }

  /// Ends the run after this many sections, on any machine.
  void end_after(std::uint64_t sections) {
    plan_.workload.iterations = sections;
    plan_.workload.duration = 60s;
  }
  /// Sections are due at this constant rate.
  void open_loop(double rate) {
    plan_.workload.rate = rate;
    plan_.workload.arrival = Arrival::constant;
  }
  void hold(Duration duration) { plan_.workload.hold = DurationDistribution::constant(duration); }

  static const Descriptor& named(std::string_view name) { return *find_strategy(name); }

  bool real_time_ = false;
  RunPlan plan_;
  Watcher watcher_;
  std::stop_source stop_;
};

/// Runs that replay a trace from a temporary file.
class TraceRunTest : public LiveRunTest {
 protected:
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  void replay(const std::string& text) {
    write(text);
    plan_.workload.trace = Trace::read(path_).value();
    plan_.workload.keys = plan_.workload.trace->keys;
  }

  const test::TemporaryFolder folder_;
  const std::string path_ = (folder_ / "trace.csv").string();
};

}  // namespace lockbench::loadgen
