#include "loadgen/cluster/rank_run.h"

#include <algorithm>
#include <utility>

#include "loadgen/run/setup.h"
#include "strategies/registry.h"

namespace lockbench::loadgen::cluster {
namespace {

constexpr Duration kBetweenFiles = std::chrono::seconds(10);
// Writing takes at most a small part of the time.
constexpr int kPauseOfWriting = 20;

}  // namespace

RankRun::RankRun(Link& link, Order order, Hello hello)
    : link_(link),
      order_(std::move(order)),
      hello_(std::move(hello)),
      share_{link.rank(), link.size(), order_.workload.clients},
      next_file_(link.now() + kBetweenFiles) {}

void RankRun::note(const PartOfRun& part, const HistogramSnapshot& acquired, bool at_once) {
  acquired_.push_back(to_samples(acquired));
  const TimePoint begun = link_.now();
  if (!at_once && begun < next_file_) return;
  keep(part_of(part));
  const TimePoint ended = link_.now();
  next_file_ = ended + std::max(kBetweenFiles, kPauseOfWriting * (ended - begun));
}

Part RankRun::part_of(const PartOfRun& of) const {
  Part part;
  part.rank = share_.rank;
  part.hello = hello_;
  part.measured = of.measured;
  part.wall_seconds = of.wall_seconds;
  part.late = of.late;
  const auto& timings = of.run.recorder.histograms(Phase::measured);
  part.lag_p99 = timings[Timing::wake_lag].snapshot().percentile(0.99);
  part.complete = of.complete;
  part.generator = of.generator;
  part.record = record_of(of.run);
  for (std::size_t i = 0; i < of.series.size(); ++i) {
    part.series.push_back({of.series[i], acquired_.at(i)});
  }
  return part;
}

void RankRun::keep(const Part& part) {
  if (order_.part_path.empty()) return;
  PartFile file{.ranks = share_.ranks, .nodes = 0, .order = order_, .part = part};
  if (const Descriptor* const strategy = find_strategy(order_.strategy)) {
    file.nodes = nodes_of_quorum(*strategy, order_.endpoints);
  }
  // Secrets reach no file.
  file.order.endpoints.clear();
  file.order.counter_url.clear();
  file.order.push.clear();
  saved_ = save(file).has_value() || saved_;  // the run does not fail for it
}

void RankRun::forget_file() const {
  if (saved_) forget(order_, share_.rank);
}

}  // namespace lockbench::loadgen::cluster
