#pragma once

#include <memory>
#include <utility>

#include "loadgen/run/worker.h"

namespace lockbench::test {

/// The state of a run without load, for recorders, watchers and summaries. Has one key; `nodes`: of
/// a quorum.
class RunUnderTest {
 public:
  explicit RunUnderTest(const Descriptor& strategy, int clients = 2, int nodes = 0,
                        std::unique_ptr<loadgen::Counter> counter = nullptr,
                        loadgen::EnvFactory make_env = make_system_env)
      : workload_{.clients = clients},
        run_{.strategy = strategy,
             .workload = workload_,
             .endpoints = endpoints_,
             .key_prefix = "lockbench:run:{",
             .nonce = 1,
             .seed = 1,
             .make_env = std::move(make_env),
             .recorder = loadgen::Recorder(clients, nodes),
             .audit = loadgen::Audit(1),
             .handoff = loadgen::HandoffTracker(1),
             .used = loadgen::UsedKeys(1 + clients),
             .counter = std::move(counter),
             .share = {.clients = clients}} {}

  loadgen::RunShared& shared() { return run_; }
  loadgen::Workload& workload() { return workload_; }
  Endpoints& endpoints() { return endpoints_; }
  loadgen::Recorder& recorder() { return run_.recorder; }

  void add(loadgen::Count what, std::uint64_t value,
           loadgen::Phase phase = loadgen::Phase::measured, int client = 0) {
    loadgen::Counts counts;
    counts[what] = value;
    run_.recorder.client(client).add(phase, counts);
  }
  void grant(Duration waited, loadgen::Phase phase = loadgen::Phase::measured, int client = 0) {
    run_.recorder.histograms(phase)[loadgen::Timing::acquired].record(waited);
    add(loadgen::Count::grants, 1, phase, client);
    add(loadgen::Count::sections, 1, phase, client);
  }

 private:
  loadgen::Workload workload_;
  Endpoints endpoints_;
  loadgen::RunShared run_;
};

}  // namespace lockbench::test
