#include "loadgen/cluster/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "results/stats/statistics.h"

namespace lockbench::loadgen::cluster {
namespace {

// A rank's waits are far from those of most ranks if they differ by this factor, and by more than
// scheduling on a busy host can.
constexpr double kFar = 1.5, kFarSeconds = 0.0005;
constexpr double kHighestCpuShare = 0.9;
// A rank that begins later than this has lost a part of the load.
constexpr Duration kLate = std::chrono::milliseconds(50);

std::string name_of(std::size_t rank, const RankFigures& figures) {
  return fmt::format("rank {} on {}", rank, figures.hello.host);
}

bool is_far(double value, double median) {
  const double low = std::min(value, median), high = std::max(value, median);
  return high > kFar * low && high - low > kFarSeconds;
}

std::vector<std::string> notes_of(const RankFigures& figures) {
  std::vector<std::string> notes = figures.use.reasons;
  if (figures.lost) notes.insert(notes.begin(), figures.why_lost);
  if (figures.use.late > kLate) {
    notes.push_back(fmt::format("it began {:.0f} ms late", seconds(figures.use.late) * 1e3));
  }
  return notes;
}

/// A line for each host whose ranks together were the bottleneck, though none was alone.
std::vector<std::string> full_hosts(const std::vector<RankFigures>& ranks) {
  struct Host {
    std::string name;
    double cpu = 0, wall = 0;
    int cores = 1, ranks = 0;
  };
  std::map<std::string, Host> hosts;
  for (const RankFigures& figures : ranks) {
    Host& host = hosts[figures.hello.boot];
    host.name = figures.hello.host;
    host.cpu += figures.use.cpu_seconds;
    host.wall = std::max(host.wall, figures.use.wall_seconds);
    host.cores = figures.hello.cores;
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

/// Those whose waits are far from the others' are marked.
std::vector<results::Rank> to_ranks(const std::vector<RankFigures>& ranks) {
  std::uint64_t all = 0;
  std::vector<double> p50s, p99s;
  for (const RankFigures& figures : ranks) {
    all += figures.sections;
    if (figures.acquired.count() == 0) continue;
    p50s.push_back(seconds(figures.acquired.percentile(0.5)));
    p99s.push_back(seconds(figures.acquired.percentile(0.99)));
  }
  const double p50 = results::median(p50s).value_or(0), p99 = results::median(p99s).value_or(0);
  std::vector<results::Rank> found;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankFigures& figures = ranks[i];
    results::Rank& rank = found.emplace_back();
    rank.rank = i;
    rank.host = figures.hello.host;
    rank.clients = static_cast<std::uint64_t>(figures.clients);
    rank.sections = figures.sections;
    rank.share = all == 0 ? 0 : static_cast<double>(figures.sections) / static_cast<double>(all);
    rank.acquire_p50 = seconds(figures.acquired.percentile(0.5));
    rank.acquire_p99 = seconds(figures.acquired.percentile(0.99));
    rank.rtt_seconds = seconds(figures.rtt);
    rank.cpu_seconds = figures.use.cpu_seconds;
    if (figures.use.wall_seconds > 0) {
      rank.cpu_share =
          figures.use.cpu_seconds / (figures.use.wall_seconds * std::max(1, figures.hello.cores));
    }
    rank.lag_p99_seconds = seconds(figures.use.lag_p99);
    rank.late_seconds = seconds(figures.use.late);
    rank.clock_offset_seconds = seconds(figures.clock.offset);
    rank.clock_drift = figures.clock.drift;
    rank.clock_bound_seconds = seconds(figures.worst_bound);
    rank.lost = figures.lost;
    rank.outlier = figures.acquired.count() > 0 && ranks.size() > 2 &&
                   (is_far(rank.acquire_p50, p50) || is_far(rank.acquire_p99, p99));
    rank.notes = notes_of(figures);
  }
  return found;
}

}  // namespace

void RankFigures::add(const Record& record) {
  for (const TimingSamples& of : record.timings) {
    if (of.phase != static_cast<std::uint8_t>(Phase::measured) ||
        of.timing != static_cast<std::uint8_t>(Timing::acquired)) {
      continue;
    }
    acquired.merge(to_snapshot(of.samples));
  }
  for (const CountsOf& of : record.counts) {
    if (of.phase != static_cast<std::uint8_t>(Phase::measured) || of.client < 0) continue;
    for (const auto& [kind, count] : of.counts) {
      if (kind == static_cast<std::uint8_t>(Count::sections)) sections += count;
    }
  }
}

void complete_by_ranks(const std::vector<RankFigures>& ranks, results::Run& run) {
  results::Generator& generator = run.generator;
  const auto invalid = [&](std::string reason) {
    generator.valid = false;
    generator.reasons.push_back(std::move(reason));
  };
  run.ranks = to_ranks(ranks);
  std::uint64_t threads = 0;
  generator.cpu_seconds = 0;
  std::map<std::string, double> capacity;  // CPU that each host had
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankFigures& figures = ranks[i];
    const UseReport& use = figures.use;
    generator.cpu_seconds += use.cpu_seconds;
    threads += static_cast<std::uint64_t>(use.threads);
    double& host = capacity[figures.hello.boot];
    host = std::max(host, use.wall_seconds * figures.hello.cores);
    if (use.on_fibers) {
      generator.busiest_thread_share =
          std::max(generator.busiest_thread_share.value_or(0), use.busiest_thread_share);
      generator.stack_high_water_bytes = std::max<std::uint64_t>(
          generator.stack_high_water_bytes.value_or(0), use.stack_high_water_bytes);
      generator.clients_on = "fibers";
    }
    for (const std::string& note : run.ranks[i].notes) {
      invalid(fmt::format("{}: {}", name_of(i, figures), note));
    }
  }
  if (!generator.clients_on) generator.clients_on = "threads";
  if (threads > 0) generator.threads = threads;
  double had = 0;
  for (const auto& [boot, seconds_of_cores] : capacity) had += seconds_of_cores;
  generator.cpu_share = had > 0 ? generator.cpu_seconds / had : 0;
  for (std::string& line : full_hosts(ranks)) invalid(std::move(line));
  const bool lost =
      std::any_of(ranks.begin(), ranks.end(), [](const RankFigures& one) { return one.lost; });
  // What its clients did last is not known: nothing was seen, but nothing is shown.
  if (lost && run.audit.verdict == results::Verdict::exclusive) {
    run.audit.verdict = results::Verdict::untested;
  }
}

}  // namespace lockbench::loadgen::cluster
