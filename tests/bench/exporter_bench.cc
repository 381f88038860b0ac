#include <benchmark/benchmark.h>
#include <prometheus/text_serializer.h>

#include <optional>
#include <vector>

#include "exporter/collect.h"
#include "strategies/registry.h"
#include "tests/support/run_shared.h"

namespace lockbench {
namespace {

/// A scrape with so many strategies, one of which is being run. CPU time is the figure: there is a
/// bound on it.
void scrape(benchmark::State& state) {
  const auto catalogue = all_strategies();
  std::vector<const Descriptor*> strategies;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    strategies.push_back(catalogue[static_cast<std::size_t>(i) % catalogue.size()]);
  }
  // As five nodes make it: every strategy has its series per node, and the run has samples in them.
  constexpr int kNodes = 5, kSamples = 1'000;
  exporter::RunMetrics metrics(strategies, kNodes);
  test::RunUnderTest run(*strategies.front(), 2, kNodes);
  for (int i = 1; i <= kSamples; ++i) run.grant(std::chrono::microseconds(i * i));
  metrics.run_begins(run.shared());
  const exporter::Facts facts{.run = {{"run", "bench"}}, .build = {}};
  std::size_t bytes = 0;
  for (auto _ : state) {
    const std::string page =
        prometheus::TextSerializer().Serialize(exporter::collect(metrics, facts));
    bytes = page.size();
    benchmark::DoNotOptimize(page.data());
  }
  state.counters["bytes"] = static_cast<double>(bytes);
  metrics.run_ends(run.shared(), nullptr);
}
// One, and as many as there are.
BENCHMARK(scrape)->Arg(1)->Arg(29)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockbench
