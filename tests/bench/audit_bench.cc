#include <benchmark/benchmark.h>

#include "loadgen/record/audit.h"
#include "loadgen/record/handoff.h"

namespace lockbench {
namespace {

constexpr int kMostThreads = 16;

/// The audit's whole cost for one uncontended section: each thread has its own key. Without clock
/// reads, as the worker needs them anyway. Fencing numbers grow by one, like a store's.
void audit_section(benchmark::State& state) {
  static loadgen::Audit audit(kMostThreads);
  const int key = state.thread_index();
  const TimePoint now = TimePoint::clock::now();
  for ([[maybe_unused]] auto _ : state) {
    const loadgen::AcquireMark mark = audit.begin_acquire(key);
    audit.enter(key, key, Mode::exclusive, mark.floor / 2, mark, now);
    audit.leave(key, Mode::exclusive, now);
  }
}
BENCHMARK(audit_section)->ThreadRange(1, kMostThreads);

/// The same on one key, as contending threads do, without any lock.
void audit_overlapping_section(benchmark::State& state) {
  static loadgen::Audit audit(1);
  const TimePoint now = TimePoint::clock::now();
  for ([[maybe_unused]] auto _ : state) {
    const loadgen::AcquireMark mark = audit.begin_acquire(0);
    audit.enter(0, state.thread_index(), Mode::exclusive, std::nullopt, mark, now);
    audit.leave(0, Mode::exclusive, now);
  }
}
BENCHMARK(audit_overlapping_section)->ThreadRange(1, kMostThreads);

void track_handoff(benchmark::State& state) {
  static loadgen::HandoffTracker tracker(kMostThreads);
  const int key = state.thread_index();
  std::int64_t tick = 0;
  std::vector<loadgen::Handoff> completed;
  for ([[maybe_unused]] auto _ : state) {
    const loadgen::WaitTicket wait = tracker.begin_wait(key);
    benchmark::DoNotOptimize(tracker.granted(key, wait, TimePoint(Duration(++tick)), completed));
    const TimePoint release_started{Duration(++tick)};
    if (tracker.release_started(key, Mode::exclusive, release_started)) {
      tracker.release_finished(key, release_started, true, completed);
    }
    completed.clear();
  }
}
BENCHMARK(track_handoff)->ThreadRange(1, kMostThreads);

}  // namespace
}  // namespace lockbench
