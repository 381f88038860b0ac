#include <benchmark/benchmark.h>

#include <thread>
#include <vector>

#include "loadgen/record/histogram.h"

namespace lockbench {
namespace {

/// The cost of a sample is its CPU time; wall time misleads with fewer cores than threads.
void record_sample(benchmark::State& state) {
  static loadgen::ShardedHistogram histogram;
  // Spread like latencies, but without the cost of drawing them.
  std::uint64_t sample = 12345 + static_cast<std::uint64_t>(state.thread_index());
  for ([[maybe_unused]] auto _ : state) {
    sample = sample * 6364136223846793005U + 1442695040888963407U;
    histogram.record(Duration(static_cast<std::int64_t>(sample >> 44)));
  }
}
BENCHMARK(record_sample)->ThreadRange(1, 16);

/// The argument is the number of threads that write meanwhile.
void take_snapshot(benchmark::State& state) {
  loadgen::ShardedHistogram histogram;
  std::vector<std::jthread> writers;
  writers.reserve(static_cast<std::size_t>(state.range(0)));
  for (int i = 0; i < state.range(0); ++i) {
    writers.emplace_back([&histogram](const std::stop_token& stop) {
      for (std::int64_t sample = 0; !stop.stop_requested(); sample = (sample + 997) % 1'000'000) {
        histogram.record(Duration(sample));
      }
    });
  }
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(histogram.snapshot());
}
BENCHMARK(take_snapshot)->Arg(0)->Arg(1)->Arg(4)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace lockbench
