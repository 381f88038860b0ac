#include "loadgen/cluster/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "loadgen/cluster/wire.h"
#include "results/file/save.h"
#include "results/stats/statistics.h"
#include "strategies/registry.h"

namespace lockbench::loadgen::cluster {
namespace {

/// The first bytes of a rank's file; the build that wrote it follows on the same line.
constexpr std::string_view kName = "lockbench.part/1 ";

// A rank is an outlier if its waits differ from the median by this factor, and by more than
// scheduling on a busy host can explain.
constexpr double kFar = 1.5, kFarSeconds = 0.0005;
constexpr double kHighestCpuShare = 0.9;
// A rank that begins later than this misses a part of the load.
constexpr double kLateSeconds = 0.05;
// No load is longer, in seconds; a longer series is not accepted.
constexpr std::size_t kMostSeconds = 10'000'000;
constexpr const char* kNoPart = "it was lost: it sent no valid part of this run";

std::vector<int> used_keys_of(const RunShared& run) {
  std::vector<int> keys;
  run.used.for_each([&](int key) { keys.push_back(key); });
  return keys;
}

/// Writes a rank's record of its share, or reads it and, if `adds`, adds it to the run.
template <bool kReads>
void pass(Wire<kReads>& wire, const Share& share, RunShared& run, bool adds) {
  Recorder& recorder = run.recorder;
  const auto each = [&](const auto& own, const auto& add) {
    auto value = kReads ? decltype(own())() : own();
    wire.pass(value);
    if (adds) add(value);
  };
  const auto each_of = [&](ShardedHistogram& histogram) {
    each([&] { return histogram.empty() ? HistogramSnapshot() : histogram.snapshot(); },
         [&](const HistogramSnapshot& more) { histogram.add(more); });
  };
  for (const Phase phase : kPhases) {
    Recorder::Histograms& histograms = recorder.histograms(phase);
    for (ShardedHistogram& timing : histograms.values) each_of(timing);
    for (Recorder::Node& node : histograms.nodes) {
      for (ShardedHistogram& taken : node.taken) each_of(taken);
      for (auto& votes : node.votes) {
        each([&] { return votes.load(); }, [&](std::uint64_t more) { votes += more; });
      }
    }
    each([&] { return recorder.service_counts(phase).values; },
         [&](const auto& more) { recorder.add(phase, Counts{more}); });
    for (int i = 0; i < share.count(); ++i) {
      ClientRecord& client = recorder.client(share.number(i));
      each([&] { return client.counts(phase).values; },
           [&](const auto& more) { client.add(phase, Counts{more}); });
    }
  }
  for (int i = 0; i < share.count(); ++i) {
    ClientWaits& waits = recorder.waits();
    const int client = share.number(i);
    each([&] { return waits.buckets_of(client); },
         [&](const auto& all) {
           for (const ClientWaits::Bucket& more : all) waits.add(client, more);
         });
  }
  each([&] { return recorder.command_snapshots(); },
       [&](const auto& all) {
         for (const auto& [command, more] : all) recorder.command(command).add(more);
       });
  each([&] { return recorder.failure_counts(); },
       [&](const auto& all) {
         for (const auto& [message, times] : all) recorder.failure(message, times);
       });
  each([&] { return recorder.replicas_wanted(); },
       [&](std::uint64_t wanted) {
         if (wanted > 0) recorder.want_replicas(wanted);
       });
  const int keys = run.workload.key_count();
  each([&] { return used_keys_of(run); },
       [&](const auto& all) {
         for (const int key : all) {
           if (key >= 0 && key < keys + run.workload.clients) run.used.mark(key);
         }
       });
  each([&] { return run.counter ? run.counter->tallies() : std::vector<CounterTally>(); },
       [&](const auto& all) {
         for (const CounterTally& more : all) {
           if (run.counter && more.key >= 0 && more.key < keys) run.counter->add(more);
         }
       });
  each([&] { return run.audit.totals(); }, [&](const AuditTotals& more) { run.audit.add(more); });
}

bool is_far(double value, double median) {
  const double low = std::min(value, median), high = std::max(value, median);
  return high > kFar * low && high - low > kFarSeconds;
}

bool lacks_some(const std::vector<RankReport>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const RankReport& rank) { return !rank.lost.empty(); });
}

/// Adds up the same second of all ranks.
std::vector<results::SeriesPoint> series_of(const std::vector<RankReport>& ranks) {
  std::size_t length = 0;
  for (const RankReport& rank : ranks) length = std::max(length, rank.part.series.size());
  std::vector<results::SeriesPoint> series(length);
  for (std::size_t i = 0; i < length; ++i) {
    results::SeriesPoint& sum = series[i];
    HistogramSnapshot acquired;
    bool complete = true;  // the waits of all ranks are there
    for (const RankReport& rank : ranks) {
      if (i >= rank.part.series.size()) continue;
      const results::SeriesPoint& own = rank.part.series[i];
      sum.t = std::max(sum.t, own.t);
      sum.warmup = sum.warmup || own.warmup;
      sum.sections += own.sections;
      sum.failed += own.failed;
      sum.waiters += own.waiters;
      sum.holders += own.holders;
      sum.acquire_p50 = std::max(sum.acquire_p50, own.acquire_p50);
      sum.acquire_p99 = std::max(sum.acquire_p99, own.acquire_p99);
      HistogramSnapshot samples;
      if (i < rank.part.acquired.size() && from_bytes(rank.part.acquired[i], samples)) {
        acquired.merge(samples);
      } else {
        complete = false;
      }
    }
    if (!complete) continue;
    sum.acquire_p50 = seconds(acquired.percentile(0.5));
    sum.acquire_p99 = seconds(acquired.percentile(0.99));
  }
  return series;
}

std::vector<results::Rank> rows_of(int clients, const std::vector<RankReport>& ranks) {
  std::uint64_t all = 0;
  std::vector<double> p50s, p99s;
  std::vector<results::Rank> rows;
  for (const RankReport& rank : ranks) {
    results::Rank& row = rows.emplace_back(rank.part.row);
    row.rank = rows.size() - 1;
    row.host = rank.hello.host;
    const Share share{static_cast<int>(row.rank), static_cast<int>(ranks.size()), clients};
    row.clients = static_cast<std::uint64_t>(share.count());
    all += row.sections;
    if (row.acquire_p99 > 0) {  // it had waits
      p50s.push_back(row.acquire_p50);
      p99s.push_back(row.acquire_p99);
    }
    row.cpu_seconds = rank.part.generator.cpu_seconds;
    if (rank.part.wall_seconds > 0) {
      row.cpu_share = row.cpu_seconds / (rank.part.wall_seconds * std::max(1, rank.hello.cores));
    }
    row.late_seconds += seconds(rank.delay);
    row.lost = !rank.lost.empty();
    if (row.lost) row.notes.push_back(rank.lost);
    const auto& reasons = rank.part.generator.reasons;
    row.notes.insert(row.notes.end(), reasons.begin(), reasons.end());
    if (rank.there && row.late_seconds > kLateSeconds) {
      row.notes.push_back(fmt::format("it began up to {:.0f} ms late", row.late_seconds * 1e3));
    }
  }
  const double p50 = results::median(p50s).value_or(0), p99 = results::median(p99s).value_or(0);
  for (results::Rank& row : rows) {
    row.share = all == 0 ? 0 : static_cast<double>(row.sections) / static_cast<double>(all);
    row.outlier = ranks.size() > 2 && row.acquire_p99 > 0 &&
                  (is_far(row.acquire_p50, p50) || is_far(row.acquire_p99, p99));
  }
  return rows;
}

}  // namespace

std::string record_of(RunShared& run) {
  Wire<false> wire;
  pass(wire, run.share, run, false);
  return wire.take();
}

bool absorb(const std::string& record, const Share& share, RunShared& run) {
  for (const bool adds : {false, true}) {
    Wire<true> wire(record);
    pass(wire, share, run, adds);
    if (!wire.done()) return false;
  }
  return true;
}

std::string path_of(const Order& order, int rank) {
  return fmt::format("{}.rank-{}", order.part_path, rank);
}

tl::expected<void, std::string> save(const PartFile& file) {
  const std::string path = path_of(file.order, static_cast<int>(file.part.row.rank));
  if (auto writable = results::check_writable(path); !writable) return writable;
  return results::replace(path, fmt::format("{}{}\n", kName, file.hello.build) + to_bytes(file));
}

bool is_part(const std::string& text) { return text.starts_with(kName); }

tl::expected<PartFile, std::string> read_part(const std::string& text, const std::string& build) {
  const auto bad = [](const char* why) { return tl::unexpected<std::string>(why); };
  if (!is_part(text)) return bad("it is not the file of a rank");
  const std::string line = fmt::format("{}{}\n", kName, build);
  if (!text.starts_with(line)) {
    return bad("another build of lockbench wrote it; only that build can read it");
  }
  PartFile file;
  if (!from_bytes(std::string_view(text).substr(line.size()), file)) return bad("it is damaged");
  constexpr int kMost = 10'000'000, kMostRanks = 100'000;
  constexpr std::size_t kMostServers = 1000;
  const Workload& workload = file.order.workload;
  const bool possible =
      workload.clients > 0 && workload.clients <= kMost && workload.keys > 0 &&
      workload.keys <= Trace::kMostKeys * 8 && file.ranks > 0 && file.ranks <= kMostRanks &&
      file.part.row.rank < static_cast<std::uint64_t>(file.ranks) &&
      std::ranges::all_of(file.order.endpoints,
                          [](const auto& set) { return set.second.size() <= kMostServers; });
  if (!possible) return bad("it is damaged");
  return file;
}

tl::expected<void, std::string> accept(Part part, std::vector<RankReport>& ranks) {
  if (part.row.rank >= ranks.size() || part.series.size() > kMostSeconds) {
    return tl::unexpected<std::string>(kNoPart);
  }
  RankReport& rank = ranks[part.row.rank];
  if (rank.is_settled()) {
    return tl::unexpected(fmt::format("there are two parts of rank {}", part.row.rank));
  }
  rank.there = true;
  rank.part = std::move(part);
  return {};
}

std::unique_ptr<WholeRun> assemble(const RunPlan& plan, const Descriptor& strategy,
                                   const Order& order, std::unique_ptr<Counter> counter,
                                   std::vector<RankReport>& ranks) {
  const std::unique_ptr<Env> env = plan.make_env(0);
  auto whole = std::make_unique<WholeRun>();
  // NOLINTNEXTLINE(modernize-make-unique): it cannot be moved
  whole->run = std::unique_ptr<RunShared>(new RunShared(make_run(
      plan, strategy, order.repetition, order.number, {.clients = plan.workload.clients}, *env)));
  RunShared& run = *whole->run;
  run.counter = std::move(counter);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    RankReport& rank = ranks[i];
    if (!rank.there) continue;
    const Share share{static_cast<int>(i), static_cast<int>(ranks.size()), plan.workload.clients};
    if (!absorb(rank.part.record, share, run)) {
      rank = {.hello = rank.hello, .delay = rank.delay, .lost = kNoPart};
    }
    whole->measured = std::max(whole->measured, rank.part.measured);
  }
  whole->series = series_of(ranks);
  // The keys that a lost rank used are unknown, so mark all: none of the run's may stay in the
  // store.
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
    double cpu = 0, wall = 0, had = 0;  ///< seconds; `had`: CPU time that there was
    int cores = 1, ranks = 0;
  };
  std::map<std::string, Host> hosts;
  results::Generator& generator = run.generator;
  const auto invalid = [&](std::string reason) {
    generator.valid = false;
    generator.reasons.push_back(std::move(reason));
  };
  run.ranks = rows_of(clients, ranks);
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
    // Ranks can be the bottleneck together, though no single one is.
    const double share = host.wall > 0 ? host.cpu / (host.wall * host.cores) : 0;
    if (host.ranks < 2 || share <= kHighestCpuShare) continue;
    invalid(fmt::format("the {} ranks on {} used {:.0f} % of its CPU", host.ranks, host.name,
                        100 * share));
  }
  generator.cpu_share = had > 0 ? generator.cpu_seconds / had : 0;
  // A lost rank's clients may have broken exclusion, so exclusion is not shown.
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
  const RunPlan plan = plan_of(order);
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
    if (auto added = accept(file.part, ranks); !added) return tl::unexpected(added.error());
    ranks.at(file.part.row.rank).hello = file.hello;
  }
  for (RankReport& rank : ranks) {
    if (!rank.there) {
      rank.lost = "its file is missing";
    } else if (!rank.part.complete) {
      rank.lost = "it was lost: the end of its record is missing";
    }
  }
  std::unique_ptr<WholeRun> whole =
      assemble(plan, *strategy, order, make_reported_counter(plan.workload.key_count()), ranks);
  results::Run result;
  result.repetition = order.repetition;
  result.warmup_seconds = seconds(plan.workload.warmup);
  summarise(*whole->run, whole->measured, result);
  result.series = std::move(whole->series);
  result.generator.reasons.emplace_back(
      "put together from the files of its ranks, which lack the servers' figures and the final "
      "value of the counter");
  result.generator.valid = false;
  complete(result, plan.workload.clients, ranks);
  return result;
}

}  // namespace lockbench::loadgen::cluster
