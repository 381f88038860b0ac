#pragma once

#include <memory>
#include <utility>

#include "loadgen/worker.h"

namespace lockbench::test {

/// A run without a load: what recorders, watchers and summaries look at. One key; `nodes`: of a
/// quorum.
class RunUnderTest {
 public:
  explicit RunUnderTest(const Descriptor& strategy, int clients = 2, int nodes = 0,
                        std::unique_ptr<Counter> counter = nullptr,
                        EnvFactory make_env = make_system_env)
      : workload_{.clients = clients},
        run_{.strategy = strategy,
             .workload = workload_,
             .endpoints = endpoints_,
             .key_prefix = "lockbench:run:{",
             .nonce = 1,
             .seed = 1,
             .make_env = std::move(make_env),
             .recorder = Recorder(clients, nodes),
             .services = {},
             .audit = Audit(1),
             .handoff = HandoffTracker(1),
             .keys = KeyChooser(1, 0),
             .counter = std::move(counter),
             .schedule = nullptr} {}

  RunShared& shared() { return run_; }
  Workload& workload() { return workload_; }
  Endpoints& endpoints() { return endpoints_; }
  Recorder& recorder() { return run_.recorder; }

  void add(Count what, std::uint64_t value, Phase phase = Phase::measured, int client = 0) {
    Counts counts;
    counts[what] = value;
    run_.recorder.client(client).add(phase, counts);
  }
  void grant(Duration waited, Phase phase = Phase::measured, int client = 0) {
    run_.recorder.histograms(phase).acquire_with(AcquireOutcome::acquired).record(waited);
    add(Count::sections, 1, phase, client);
  }

 private:
  Workload workload_;
  Endpoints endpoints_;
  RunShared run_;
};

}  // namespace lockbench::test
