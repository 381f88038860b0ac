#include "results/report/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace lockbench::results::report {
namespace {

constexpr std::size_t kMostServers = 20, kMostCapacities = 32, kMostSeries = 700'000;

template <class T>
void cut(std::vector<T>& list, std::size_t most, std::string_view what, Remarks& said) {
  if (list.size() <= most) return;
  said.push_back({Tone::doubtful, fmt::format("{} of {} {} are shown; the file has all of them",
                                              most, list.size(), what)});
  list.resize(most);
}

void trim_runs(Result& result, Remarks& said) {
  std::set<std::string> strategies;
  const std::size_t before = result.runs.size();
  std::erase_if(result.runs, [&](const Run& run) {
    if (strategies.contains(run.strategy)) return false;
    if (strategies.size() == kMostStrategies) return true;
    strategies.insert(run.strategy);
    return false;
  });
  if (result.runs.size() < before) {
    said.push_back({Tone::doubtful,
                    fmt::format("only the first {} strategies are shown; the file has all of them",
                                kMostStrategies)});
  }
  cut(result.runs, kMostRuns, "runs", said);
  for (Run& run : result.runs) {
    cut(run.series, kMostSeries, "points of a series", said);
    cut(run.faults, kMostRows, "faults of a run", said);
  }
}

}  // namespace

void trim(Result& result, Remarks& said) {
  trim_runs(result, said);
  cut(result.skipped, kMostRows, "skipped strategies", said);
  if (result.hazards) cut(*result.hazards, kMostPlays, "plays", said);
  if (result.experiment) {
    std::visit([&](auto& points) { cut(points, kMostMeasured, "points", said); },
               result.experiment->points);
  }
  if (result.capacity) {
    cut(*result.capacity, kMostCapacities, "strategies", said);
    for (Capacity& capacity : *result.capacity) {
      cut(capacity.rates, kMostRows, "rates", said);
      cut(capacity.steps, kMostRows, "steps", said);
    }
  }
  if (result.observed) cut(*result.observed, kMostRows, "families", said);
  cut(result.locks, kMostRows, "locks", said);
  cut(result.findings, kMostRemarks, "findings", said);
  cut(result.sources, kMostServers, "watched servers", said);
  auto& servers = result.environment.servers;
  while (servers.size() > kMostServers) servers.erase(std::prev(servers.end()));
}

}  // namespace lockbench::results::report
