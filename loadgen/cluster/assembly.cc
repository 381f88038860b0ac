#include "loadgen/cluster/assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "loadgen/run/named_load.h"
#include "loadgen/run/setup.h"
#include "loadgen/run/summary.h"
#include "results/stats/statistics.h"
#include "strategies/registry.h"

namespace lockbench::loadgen::cluster {
namespace {

// A rank's waits are far from those of most ranks if they differ by this factor, and by more than
// scheduling on a busy host can.
constexpr double kFar = 1.5, kFarSeconds = 0.0005;
constexpr double kHighestCpuShare = 0.9;
// A rank that begins later than this has lost a part of the load.
constexpr Duration kLate = std::chrono::milliseconds(50);
// No load is longer, in seconds: a series beyond that is none.
constexpr std::size_t kMostSeconds = 10'000'000;

bool is_far(double value, double median) {
  const double low = std::min(value, median), high = std::max(value, median);
  return high > kFar * low && high - low > kFarSeconds;
}

/// Whether all that the record says of clients is of those that its rank has.
bool is_of(const Share& share, const Record& record) {
  const int first = share.number(0);
  const auto is_own = [&](std::int32_t client) {
    return client >= first && client < first + share.count();
  };
  return std::all_of(record.counts.begin(), record.counts.end(),
                     [&](const CountsOf& of) {
                       return of.client == CountsOf::kServices || is_own(of.client);
                     }) &&
         std::all_of(record.waits.begin(), record.waits.end(),
                     [&](const WaitsOf& of) { return is_own(of.client); });
}

/// Whether both are parts of one run.
bool fit(const PartFile& one, const PartFile& other) {
  return one.order.run_id == other.order.run_id && one.order.number == other.order.number &&
         one.ranks == other.ranks;
}

}  // namespace

Assembly::Assembly(std::unique_ptr<RunShared> run, const std::vector<Hello>& hellos)
    : run_(std::move(run)), ranks_(hellos.size()) {
  const int ranks = static_cast<int>(hellos.size());
  for (int i = 0; i < ranks; ++i) {
    at(i).hello = hellos[static_cast<std::size_t>(i)];
    at(i).clients = Share{i, ranks, run_->workload.clients}.count();
  }
}

tl::expected<void, std::string> Assembly::add(const Part& part) {
  const auto ranks = static_cast<int>(ranks_.size());
  const bool possible = part.rank >= 0 && part.rank < ranks && part.series.size() <= kMostSeconds &&
                        is_of({part.rank, ranks, run_->workload.clients}, part.record);
  if (!possible) return tl::unexpected<std::string>("what it sent is no part of this run");
  Rank& rank = at(part.rank);
  if (knows(part.rank)) return tl::unexpected(fmt::format("two parts are of rank {}", part.rank));
  rank.there = true;
  rank.late = part.late;
  rank.lag_p99 = part.lag_p99;
  rank.wall_seconds = part.wall_seconds;
  rank.generator = part.generator;
  for (const TimingSamples& of : part.record.timings) {
    const bool acquired = of.phase == static_cast<std::uint8_t>(Phase::measured) &&
                          of.timing == static_cast<std::uint8_t>(Timing::acquired);
    if (acquired) rank.acquired.merge(to_snapshot(of.samples));
  }
  for (const CountsOf& of : part.record.counts) {
    if (of.phase != static_cast<std::uint8_t>(Phase::measured) || of.client < 0) continue;
    for (const auto& [kind, count] : of.counts) {
      if (kind == static_cast<std::uint8_t>(Count::sections)) rank.sections += count;
    }
  }
  absorb(part.record, *run_);
  add_seconds(part.series);
  measured_ = std::max(measured_, part.measured);
  return {};
}

void Assembly::add_seconds(const std::vector<Second>& series) {
  if (seconds_.size() < series.size()) seconds_.resize(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) {
    results::SeriesPoint& sum = seconds_[i].point;
    const results::SeriesPoint& own = series[i].point;
    sum.t = std::max(sum.t, own.t);
    sum.warmup = sum.warmup || own.warmup;
    sum.sections += own.sections;
    sum.failed += own.failed;
    sum.waiters += own.waiters;
    sum.holders += own.holders;
    seconds_[i].acquired.merge(to_snapshot(series[i].acquired));
  }
}

void Assembly::lose(int rank, const std::string& why) {
  if (at(rank).lost.empty()) at(rank).lost = why;
}

bool Assembly::knows_all() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.there || !rank.lost.empty(); });
}

bool Assembly::lacks_some() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return !rank.lost.empty(); });
}

std::unique_ptr<WholeRun> Assembly::take() {
  auto whole = std::make_unique<WholeRun>();
  // Nobody knows which keys a lost rank has used: none of the run's may stay in the store.
  const int keys = lacks_some() ? run_->workload.key_count() + run_->workload.clients : 0;
  for (int key = 0; key < keys; ++key) run_->used.mark(key);
  whole->run = std::move(run_);
  whole->measured = measured_;
  for (const SecondSum& second : seconds_) {
    results::SeriesPoint& point = whole->series.emplace_back(second.point);
    point.acquire_p50 = seconds(second.acquired.percentile(0.5));
    point.acquire_p99 = seconds(second.acquired.percentile(0.99));
  }
  return whole;
}

void Assembly::add_to(RunEvidence& evidence) const {
  for (const Rank& rank : ranks_) {
    if (const auto& share = rank.generator.busiest_thread_share) {
      evidence.busiest_thread_seconds =
          std::max(evidence.busiest_thread_seconds.value_or(0), *share * evidence.wall_seconds);
    }
    const bool beside = &rank != &ranks_.front() && rank.hello.boot == ranks_.front().hello.boot;
    if (beside) evidence.cpu_seconds += rank.generator.cpu_seconds;
  }
}

void Assembly::complete(results::Run& run) const {
  results::Generator& generator = run.generator;
  const auto invalid = [&](std::string reason) {
    generator.valid = false;
    generator.reasons.push_back(std::move(reason));
  };
  run.ranks = table();
  std::uint64_t threads = 0;
  generator.cpu_seconds = 0;
  std::map<std::string, double> capacity;  // CPU that each host had
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    const results::Generator& own = rank.generator;
    generator.cpu_seconds += own.cpu_seconds;
    threads += own.threads.value_or(0);
    double& host = capacity[rank.hello.boot];
    host = std::max(host, rank.wall_seconds * rank.hello.cores);
    generator.busiest_thread_share =
        std::max(generator.busiest_thread_share, own.busiest_thread_share);
    generator.stack_high_water_bytes =
        std::max(generator.stack_high_water_bytes, own.stack_high_water_bytes);
    for (const std::string& note : run.ranks[i].notes) {
      invalid(fmt::format("rank {} on {}: {}", i, rank.hello.host, note));
    }
  }
  if (threads > 0) generator.threads = threads;
  double had = 0;
  for (const auto& [boot, seconds_of_cores] : capacity) had += seconds_of_cores;
  generator.cpu_share = had > 0 ? generator.cpu_seconds / had : 0;
  for (std::string& line : full_hosts()) invalid(std::move(line));
  // What its clients did is not known: nothing was seen, but nothing is shown.
  if (lacks_some() && run.audit.verdict == results::Verdict::exclusive) {
    run.audit.verdict = results::Verdict::untested;
  }
}

std::vector<std::string> Assembly::notes_of(const Rank& rank) const {
  std::vector<std::string> notes = rank.generator.reasons;
  if (!rank.lost.empty()) notes.insert(notes.begin(), rank.lost);
  if (const Duration late = rank.late + rank.delay; rank.there && late > kLate) {
    notes.push_back(fmt::format("it began up to {:.0f} ms late", seconds(late) * 1e3));
  }
  return notes;
}

std::vector<results::Rank> Assembly::table() const {
  std::uint64_t all = 0;
  std::vector<double> p50s, p99s;
  for (const Rank& rank : ranks_) {
    all += rank.sections;
    if (rank.acquired.count() == 0) continue;
    p50s.push_back(seconds(rank.acquired.percentile(0.5)));
    p99s.push_back(seconds(rank.acquired.percentile(0.99)));
  }
  const double p50 = results::median(p50s).value_or(0), p99 = results::median(p99s).value_or(0);
  std::vector<results::Rank> table;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    results::Rank& row = table.emplace_back();
    row.rank = i;
    row.host = rank.hello.host;
    row.clients = static_cast<std::uint64_t>(rank.clients);
    row.sections = rank.sections;
    row.share = all == 0 ? 0 : static_cast<double>(rank.sections) / static_cast<double>(all);
    row.acquire_p50 = seconds(rank.acquired.percentile(0.5));
    row.acquire_p99 = seconds(rank.acquired.percentile(0.99));
    row.cpu_seconds = rank.generator.cpu_seconds;
    if (rank.wall_seconds > 0) {
      row.cpu_share = row.cpu_seconds / (rank.wall_seconds * std::max(1, rank.hello.cores));
    }
    row.lag_p99_seconds = seconds(rank.lag_p99);
    row.late_seconds = seconds(rank.late + rank.delay);
    row.lost = !rank.lost.empty();
    row.outlier = rank.acquired.count() > 0 && ranks_.size() > 2 &&
                  (is_far(row.acquire_p50, p50) || is_far(row.acquire_p99, p99));
    row.notes = notes_of(rank);
  }
  return table;
}

std::vector<std::string> Assembly::full_hosts() const {
  struct Host {
    std::string name;
    double cpu = 0, wall = 0;
    int cores = 1, ranks = 0;
  };
  std::map<std::string, Host> hosts;
  for (const Rank& rank : ranks_) {
    Host& host = hosts[rank.hello.boot];
    host.name = rank.hello.host;
    host.cpu += rank.generator.cpu_seconds;
    host.wall = std::max(host.wall, rank.wall_seconds);
    host.cores = rank.hello.cores;
    ++host.ranks;
  }
  std::vector<std::string> lines;
  for (const auto& [boot, host] : hosts) {
    const double share = host.wall > 0 ? host.cpu / (host.wall * host.cores) : 0;
    if (host.ranks < 2 || share <= kHighestCpuShare) continue;
    lines.push_back(fmt::format("the {} ranks on {} used {:.0f} % of its CPU", host.ranks,
                                host.name, 100 * share));
  }
  return lines;
}

tl::expected<results::Run, std::string> merge(const std::vector<PartFile>& files) {
  if (files.empty()) return tl::unexpected<std::string>("there are no files of ranks");
  const PartFile& first = files.front();
  const Order& order = first.order;
  const Descriptor* const strategy = find_strategy(order.strategy);
  if (strategy == nullptr) return tl::unexpected("no such strategy: " + order.strategy);
  RunPlan plan = plan_of(order);
  const std::unique_ptr<Env> env = make_system_env(0);
  // Their names went with the secrets.
  plan.endpoints[std::string(server_set(*strategy))].resize(static_cast<std::size_t>(first.nodes));
  std::unique_ptr<RunShared> run(new RunShared(make_run(
      plan, *strategy, order.repetition, order.number, {.clients = plan.workload.clients}, *env)));
  std::vector<Hello> hellos(static_cast<std::size_t>(first.ranks), Hello{.host = "?"});
  for (const PartFile& file : files) {
    if (!fit(first, file)) {
      return tl::unexpected(fmt::format(
          "the files are of different runs: {} run {} of {} ranks, and {} run {} of {} ranks",
          order.run_id, order.number, first.ranks, file.order.run_id, file.order.number,
          file.ranks));
    }
    hellos.at(static_cast<std::size_t>(file.part.rank)) = file.part.hello;
  }
  Assembly assembly(std::move(run), hellos);
  assembly.set_counter(make_reported_counter(plan.workload.key_count()));
  for (const PartFile& file : files) {
    if (auto added = assembly.add(file.part); !added) return tl::unexpected(added.error());
  }
  for (const PartFile& file : files) {
    if (file.part.complete) continue;
    assembly.lose(file.part.rank, "it was lost: what it did last is missing");
  }
  for (int rank = 0; rank < first.ranks; ++rank) {
    if (!assembly.knows(rank)) assembly.lose(rank, "its file is missing");
  }
  std::unique_ptr<WholeRun> whole = assembly.take();
  results::Run result;
  result.strategy = strategy->name;
  result.backend = strategy->backend;
  result.repetition = order.repetition;
  result.load = load_of(plan.workload);
  result.warmup_seconds = seconds(plan.workload.warmup);
  summarise(*whole->run, whole->measured, result);
  result.series = std::move(whole->series);
  result.generator.reasons.emplace_back(
      "put together from the files of its ranks: the servers are not in them, nor is what the "
      "counter held in the end");
  result.generator.valid = false;
  assembly.complete(result);
  return result;
}

}  // namespace lockbench::loadgen::cluster
