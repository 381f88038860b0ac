#include "loadgen/cluster/partial.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "loadgen/cluster/ranks.h"
#include "loadgen/cluster/wire.h"
#include "loadgen/run/named_load.h"
#include "loadgen/run/setup.h"
#include "loadgen/run/summary.h"
#include "results/file/save.h"
#include "strategies/registry.h"

namespace lockbench::loadgen::cluster {
namespace {

/// The first bytes of such a file; the build that wrote it follows on the same line.
constexpr std::string_view kName = "lockbench.partial/1 ";

std::string first_line(const std::string& build) { return std::string(kName) + build + "\n"; }

tl::unexpected<std::string> bad(const std::string& why) { return tl::unexpected(why); }

/// The same second of several ranks.
class SecondSum {
 public:
  void add(const Second& of) {
    point_.t = std::max(point_.t, of.point.t);
    point_.warmup = point_.warmup || of.point.warmup;
    point_.sections += of.point.sections;
    point_.failed += of.point.failed;
    point_.waiters += of.point.waiters;
    point_.holders += of.point.holders;
    acquired_.merge(to_snapshot(of.acquired));
  }
  results::SeriesPoint point() const {
    results::SeriesPoint point = point_;
    point.acquire_p50 = seconds(acquired_.percentile(0.5));
    point.acquire_p99 = seconds(acquired_.percentile(0.99));
    return point;
  }

 private:
  results::SeriesPoint point_;
  HistogramSnapshot acquired_;
};

/// Whether both are parts of one run.
bool fit(const Partial& one, const Partial& other) {
  return one.order.run_id == other.order.run_id && one.order.number == other.order.number &&
         one.ranks == other.ranks;
}

tl::expected<void, std::string> check(const std::vector<Partial>& partials) {
  const Partial& first = partials.front();
  std::vector<bool> seen(static_cast<std::size_t>(first.ranks));
  for (const Partial& one : partials) {
    if (!fit(first, one)) {
      return bad(
          fmt::format("the files are of different runs: {} run {} of {} ranks, and {} run "
                      "{} of {} ranks",
                      first.order.run_id, first.order.number, first.ranks, one.order.run_id,
                      one.order.number, one.ranks));
    }
    if (one.rank < 0 || one.rank >= first.ranks) return bad("a rank that the run did not have");
    if (seen[static_cast<std::size_t>(one.rank)]) {
      return bad(fmt::format("two files are of rank {}", one.rank));
    }
    seen[static_cast<std::size_t>(one.rank)] = true;
  }
  return {};
}

}  // namespace

std::string path_of(const Order& order, int rank) {
  return fmt::format("{}.rank-{}", order.partial_path, rank);
}

tl::expected<void, std::string> save(const Partial& partial, const std::string& build) {
  const std::string path = path_of(partial.order, partial.rank);
  if (auto writable = results::check_writable(path); !writable) return writable;
  return results::replace(path, first_line(build) + to_bytes(partial));
}

void forget(const Order& order, int rank) {
  std::error_code ignored;
  std::filesystem::remove(path_of(order, rank), ignored);
}

bool is_partial(const std::string& text) { return text.starts_with(kName); }

tl::expected<Partial, std::string> read_partial(const std::string& text, const std::string& build) {
  if (!is_partial(text)) return bad("it is no file of a rank");
  const std::string line = first_line(build);
  if (!text.starts_with(line)) {
    return bad("another build of lockbench wrote it, and only that can read it");
  }
  Partial partial;
  if (!from_bytes(std::string_view(text).substr(line.size()), partial)) return bad("it is damaged");
  constexpr int kMost = 10'000'000;
  const Workload& workload = partial.order.workload;
  const bool possible = workload.clients > 0 && workload.clients <= kMost && workload.keys > 0 &&
                        workload.keys <= Trace::kMostKeys * 8 && partial.ranks > 0 &&
                        partial.ranks <= kMost && partial.nodes >= 0 && partial.nodes < 1000;
  if (!possible) return bad("it is damaged");
  return partial;
}

tl::expected<results::Run, std::string> merge(std::vector<Partial> partials) {
  if (partials.empty()) return bad("there are no files of ranks");
  if (auto fitting = check(partials); !fitting) return tl::unexpected(fitting.error());
  const Order& order = partials.front().order;
  const Descriptor* const strategy = find_strategy(order.strategy);
  if (strategy == nullptr) return bad("no such strategy: " + order.strategy);

  RunPlan plan = plan_of(order);
  const std::unique_ptr<Env> env = make_system_env(0);
  Endpoints nodes;
  // Their names went with the secrets.
  nodes[std::string(server_set(*strategy))].resize(
      static_cast<std::size_t>(partials.front().nodes));
  plan.endpoints = nodes;
  RunShared run = make_run(plan, *strategy, order.repetition, order.number,
                           {.clients = plan.workload.clients}, *env);
  run.counter = make_reported_counter(plan.workload.key_count());
  std::vector<RankFigures> ranks(static_cast<std::size_t>(partials.front().ranks));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].clients =
        Share{static_cast<int>(i), partials.front().ranks, plan.workload.clients, order.split}
            .count();
    ranks[i].hello.host = "?";
    ranks[i].lost = true;
    ranks[i].why_lost = "its file is missing";
  }
  Duration measured{};
  std::vector<SecondSum> seconds_of_all;
  for (const Partial& partial : partials) {
    absorb(partial.record, run);
    if (seconds_of_all.size() < partial.series.size()) seconds_of_all.resize(partial.series.size());
    for (std::size_t i = 0; i < partial.series.size(); ++i) {
      seconds_of_all[i].add(partial.series[i]);
    }
    measured = std::max(measured, partial.measured);
    RankFigures& figures = ranks[static_cast<std::size_t>(partial.rank)];
    figures.hello = partial.hello;
    figures.clock = partial.clock;
    figures.worst_bound = partial.clock.bound;
    figures.use = partial.use;
    figures.add(partial.record);
    figures.lost = !partial.complete;
    figures.why_lost = "it was lost: what it did last is missing";
  }
  results::Run result;
  result.strategy = strategy->name;
  result.backend = strategy->backend;
  result.repetition = order.repetition;
  result.load = load_of(plan.workload);
  result.warmup_seconds = seconds(plan.workload.warmup);
  summarise(run, measured, result);
  for (const SecondSum& second : seconds_of_all) result.series.push_back(second.point());
  result.generator.reasons.emplace_back(
      "put together from the files of its ranks: overlaps, handoffs, contention and fencing "
      "numbers between ranks are not in them");
  complete_by_ranks(ranks, result);
  result.generator.valid = false;
  return result;
}

}  // namespace lockbench::loadgen::cluster
