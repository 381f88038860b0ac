#include "loadgen/cluster/assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

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
  const auto is_own = [&, first = share.number(0)](std::int32_t client) {
    return client >= first && client < first + share.count();
  };
  return std::all_of(record.counts.begin(), record.counts.end(),
                     [&](const CountsOf& of) {
                       return of.client == CountsOf::kServices || is_own(of.client);
                     }) &&
         std::all_of(record.waits.begin(), record.waits.end(),
                     [&](const WaitsOf& of) { return is_own(of.client); });
}

bool lacks_some(const std::vector<RankReport>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const RankReport& rank) { return !rank.lost.empty(); });
}

/// The same seconds of all ranks.
std::vector<results::SeriesPoint> series_of(const std::vector<RankReport>& ranks) {
  std::size_t length = 0;
  for (const RankReport& rank : ranks) length = std::max(length, rank.part.series.size());
  std::vector<results::SeriesPoint> series(length);
  for (std::size_t i = 0; i < length; ++i) {
    results::SeriesPoint& sum = series[i];
    HistogramSnapshot acquired;
    for (const RankReport& rank : ranks) {
      if (i >= rank.part.series.size()) continue;
      const results::SeriesPoint& own = rank.part.series[i].point;
      sum.t = std::max(sum.t, own.t);
      sum.warmup = sum.warmup || own.warmup;
      sum.sections += own.sections;
      sum.failed += own.failed;
      sum.waiters += own.waiters;
      sum.holders += own.holders;
      acquired.merge(to_snapshot(rank.part.series[i].acquired));
    }
    sum.acquire_p50 = seconds(acquired.percentile(0.5));
    sum.acquire_p99 = seconds(acquired.percentile(0.99));
  }
  return series;
}

/// The measured waits of a rank's clients that ended with a grant.
HistogramSnapshot acquired_by(const RankReport& rank) {
  HistogramSnapshot acquired;
  for (const auto& [place, samples] : rank.part.record.histograms) {
    if (place == place_of(Phase::measured, Timing::acquired)) acquired.merge(to_snapshot(samples));
  }
  return acquired;
}

std::uint64_t sections_of(const RankReport& rank) {
  std::uint64_t sections = 0;
  for (const CountsOf& of : rank.part.record.counts) {
    if (of.phase != static_cast<std::uint8_t>(Phase::measured) || of.client < 0) continue;
    for (const auto& [kind, count] : of.counts) {
      if (kind == static_cast<std::uint8_t>(Count::sections)) sections += count;
    }
  }
  return sections;
}

std::vector<std::string> notes_of(const RankReport& rank) {
  std::vector<std::string> notes = rank.part.generator.reasons;
  if (!rank.lost.empty()) notes.insert(notes.begin(), rank.lost);
  if (const Duration late = rank.part.late + rank.delay; rank.there && late > kLate) {
    notes.push_back(fmt::format("it began up to {:.0f} ms late", seconds(late) * 1e3));
  }
  return notes;
}

std::vector<results::Rank> table_of(int clients, const std::vector<RankReport>& ranks) {
  std::uint64_t all = 0;
  std::vector<double> p50s, p99s;
  std::vector<results::Rank> table;
  for (const RankReport& rank : ranks) {
    const Part& part = rank.part;
    results::Rank& row = table.emplace_back();
    row.rank = table.size() - 1;
    row.host = rank.hello.host;
    const Share share{static_cast<int>(row.rank), static_cast<int>(ranks.size()), clients};
    row.clients = static_cast<std::uint64_t>(share.count());
    row.sections = sections_of(rank);
    all += row.sections;
    if (const HistogramSnapshot acquired = acquired_by(rank); acquired.count() > 0) {
      row.acquire_p50 = p50s.emplace_back(seconds(acquired.percentile(0.5)));
      row.acquire_p99 = p99s.emplace_back(seconds(acquired.percentile(0.99)));
      row.outlier = ranks.size() > 2;  // unless it is near the others
    }
    row.cpu_seconds = part.generator.cpu_seconds;
    if (part.wall_seconds > 0) {
      row.cpu_share = row.cpu_seconds / (part.wall_seconds * std::max(1, rank.hello.cores));
    }
    row.lag_p99_seconds = seconds(part.lag_p99);
    row.late_seconds = seconds(part.late + rank.delay);
    row.lost = !rank.lost.empty();
    row.notes = notes_of(rank);
  }
  const double p50 = results::median(p50s).value_or(0), p99 = results::median(p99s).value_or(0);
  for (results::Rank& row : table) {
    row.share = all == 0 ? 0 : static_cast<double>(row.sections) / static_cast<double>(all);
    row.outlier = row.outlier && (is_far(row.acquire_p50, p50) || is_far(row.acquire_p99, p99));
  }
  return table;
}

}  // namespace

tl::expected<void, std::string> accept(Part part, int clients, std::vector<RankReport>& ranks) {
  const auto count = static_cast<int>(ranks.size());
  const bool possible = part.rank >= 0 && part.rank < count && part.series.size() <= kMostSeconds &&
                        is_of({part.rank, count, clients}, part.record);
  if (!possible) return tl::unexpected<std::string>("what it sent is no part of this run");
  RankReport& rank = ranks[static_cast<std::size_t>(part.rank)];
  if (rank.is_settled()) return tl::unexpected(fmt::format("two parts are of rank {}", part.rank));
  rank.there = true;
  rank.part = std::move(part);
  return {};
}

std::unique_ptr<WholeRun> assemble(const RunPlan& plan, const Descriptor& strategy,
                                   const Order& order, std::unique_ptr<Counter> counter,
                                   const std::vector<RankReport>& ranks) {
  const std::unique_ptr<Env> env = plan.make_env(0);
  auto whole = std::make_unique<WholeRun>();
  // NOLINTNEXTLINE(modernize-make-unique): it cannot be moved
  whole->run = std::unique_ptr<RunShared>(new RunShared(make_run(
      plan, strategy, order.repetition, order.number, {.clients = plan.workload.clients}, *env)));
  RunShared& run = *whole->run;
  run.counter = std::move(counter);
  for (const RankReport& rank : ranks) {
    absorb(rank.part.record, run);
    whole->measured = std::max(whole->measured, rank.part.measured);
  }
  whole->series = series_of(ranks);
  // Nobody knows which keys a lost rank has used: none of the run's may stay in the store.
  const int keys = lacks_some(ranks) ? run.workload.key_count() + run.workload.clients : 0;
  for (int key = 0; key < keys; ++key) run.used.mark(key);
  return whole;
}

void add_to(RunEvidence& evidence, const std::vector<RankReport>& ranks) {
  for (const RankReport& rank : ranks) {
    const results::Generator& own = rank.part.generator;
    if (own.busiest_thread_share) {
      evidence.busiest_thread_seconds = std::max(evidence.busiest_thread_seconds.value_or(0),
                                                 *own.busiest_thread_share * evidence.wall_seconds);
    }
    const bool beside = &rank != &ranks.front() && rank.hello.boot == ranks.front().hello.boot;
    if (beside) evidence.cpu_seconds += own.cpu_seconds;
  }
}

void complete(results::Run& run, int clients, const std::vector<RankReport>& ranks) {
  struct Host {
    std::string name;
    double cpu = 0, wall = 0, had = 0;  ///< `had`: CPU time
    int cores = 1, ranks = 0;
  };
  std::map<std::string, Host> hosts;
  results::Generator& generator = run.generator;
  const auto invalid = [&](std::string reason) {
    generator.valid = false;
    generator.reasons.push_back(std::move(reason));
  };
  run.ranks = table_of(clients, ranks);
  std::uint64_t threads = 0;
  generator.cpu_seconds = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankReport& rank = ranks[i];
    const results::Generator& own = rank.part.generator;
    generator.cpu_seconds += own.cpu_seconds;
    threads += own.threads.value_or(0);
    Host& host = hosts[rank.hello.boot];
    host.name = rank.hello.host;
    host.cpu += own.cpu_seconds;
    host.wall = std::max(host.wall, rank.part.wall_seconds);
    host.had = std::max(host.had, rank.part.wall_seconds * rank.hello.cores);
    host.cores = rank.hello.cores;
    ++host.ranks;
    generator.busiest_thread_share =
        std::max(generator.busiest_thread_share, own.busiest_thread_share);
    for (const std::string& note : run.ranks[i].notes) {
      invalid(fmt::format("rank {} on {}: {}", i, rank.hello.host, note));
    }
  }
  generator.clients_on = "fibers";
  if (threads > 0) generator.threads = threads;
  double had = 0;
  for (const auto& [boot, host] : hosts) {
    had += host.had;
    // Ranks together can be the bottleneck, though none is alone.
    const double share = host.wall > 0 ? host.cpu / (host.wall * host.cores) : 0;
    if (host.ranks < 2 || share <= kHighestCpuShare) continue;
    invalid(fmt::format("the {} ranks on {} used {:.0f} % of its CPU", host.ranks, host.name,
                        100 * share));
  }
  generator.cpu_share = had > 0 ? generator.cpu_seconds / had : 0;
  // What its clients did is not known: nothing was seen, but nothing is shown.
  if (lacks_some(ranks) && run.audit.verdict == results::Verdict::exclusive) {
    run.audit.verdict = results::Verdict::untested;
  }
}

RunPlan plan_of(const Order& order, RunPlan plan) {
  plan.run_id = order.run_id;
  plan.workload = order.workload;
  plan.endpoints = order.endpoints;
  plan.counter_url = order.counter_url;
  return plan;
}

tl::expected<results::Run, std::string> merge(const std::vector<PartFile>& files) {
  if (files.empty()) return tl::unexpected<std::string>("there are no files of ranks");
  const PartFile& first = files.front();
  const Order& order = first.order;
  const Descriptor* const strategy = find_strategy(order.strategy);
  if (strategy == nullptr) return tl::unexpected("no such strategy: " + order.strategy);
  RunPlan plan = plan_of(order);
  const int clients = plan.workload.clients;
  // Their names went with the secrets.
  plan.endpoints[std::string(server_set(*strategy))].resize(static_cast<std::size_t>(first.nodes));
  std::vector<RankReport> ranks(static_cast<std::size_t>(first.ranks));
  for (RankReport& rank : ranks) rank.hello.host = "?";
  for (const PartFile& file : files) {
    if (order.run_id != file.order.run_id || order.number != file.order.number ||
        first.ranks != file.ranks) {
      return tl::unexpected(fmt::format(
          "the files are of different runs: {} run {} of {} ranks, and {} run {} of {} ranks",
          order.run_id, order.number, first.ranks, file.order.run_id, file.order.number,
          file.ranks));
    }
    if (auto added = accept(file.part, clients, ranks); !added)
      return tl::unexpected(added.error());
    ranks.at(static_cast<std::size_t>(file.part.rank)).hello = file.hello;
  }
  for (RankReport& rank : ranks) {
    if (!rank.there) {
      rank.lost = "its file is missing";
    } else if (!rank.part.complete) {
      rank.lost = "it was lost: what it did last is missing";
    }
  }
  std::unique_ptr<WholeRun> whole =
      assemble(plan, *strategy, order, make_reported_counter(plan.workload.key_count()), ranks);
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
  complete(result, clients, ranks);
  return result;
}

}  // namespace lockbench::loadgen::cluster
