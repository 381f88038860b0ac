#include "results/stats/load_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "results/stats/figures.h"
#include "results/stats/statistics.h"

namespace lockbench::results {
namespace {

bool has_load(const Run& run, std::string_view name) { return run.load.name == name; }

bool before(const Load& a, const Load& b) {
  return std::tuple(a.rate.value_or(0), a.rtt_seconds) <
         std::tuple(b.rate.value_or(0), b.rtt_seconds);
}

/// Differences below are nothing that anybody would act on.
constexpr double kTenth = 1.1;

std::vector<double> logarithms(std::vector<double> values) {
  // A wait of nothing is one of a nanosecond.
  for (double& value : values) value = std::log(std::max(value, 1e-9));
  return values;
}

/// The known scatter of the longest waits; the rarer ones scatter at least as much.
constexpr double kScatterOfWaits = 0.5;

/// Whether `b`, which is higher, can be told apart from `a`. Both are logarithms.
bool told_apart(const std::vector<double>& a, const std::vector<double>& b, double scatter) {
  const Welch sample = welch(a, b, scatter);
  return sample.difference >= std::log(kTenth) &&
         sample.difference > student_quantile(0.975, sample.degrees) * sample.error;
}

const char* deciding_figure(std::string_view load) {
  if (load == "alone") return "acquire.p50";
  return load == "demand" ? "acquire.p99" : "fairness.longest_wait_seconds";
}

/// What decides under this load, by repetition.
std::vector<double> deciding_values(const StrategyLoads& strategy, const std::string& load) {
  std::vector<double> values;
  const std::size_t point = load == "demand" ? 0 : strategy.points_of(load) - 1;
  const char* const decides = deciding_figure(load);
  for (const Run* run : strategy.counting_runs(load, point)) {
    const auto value = [&](const char* path) { return figure(*run, path); };
    std::optional<double> found = value(decides);
    if (!found) continue;
    if (load == "alone") *found += value("release.p50").value_or(0);
    values.push_back(*found);
  }
  return values;
}

}  // namespace

std::vector<const Run*> StrategyLoads::runs_of(std::string_view load) const {
  std::vector<const Run*> found;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(found),
               [&](const Run* run) { return has_load(*run, load); });
  return found;
}

std::size_t StrategyLoads::points_of(std::string_view load) const {
  return static_cast<std::size_t>(std::count_if(points.begin(), points.end(),
                                                [&](const Load& one) { return one.name == load; }));
}

std::vector<const Run*> StrategyLoads::runs_of(std::string_view load, std::size_t point) const {
  std::vector<Load> of_load;
  std::copy_if(points.begin(), points.end(), std::back_inserter(of_load),
               [&](const Load& one) { return one.name == load; });
  std::vector<const Run*> found;
  if (point >= of_load.size()) return found;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(found),
               [&](const Run* run) { return run->load == of_load[point]; });
  return found;
}

std::vector<const Run*> StrategyLoads::counting_runs(std::string_view load,
                                                     std::size_t point) const {
  const std::vector<const Run*> all = runs_of(load, point);
  std::vector<const Run*> valid;
  std::copy_if(all.begin(), all.end(), std::back_inserter(valid),
               [](const Run* run) { return is_of_the_lock(*run); });
  return valid.empty() ? all : valid;
}

std::optional<LoadFigure> StrategyLoads::figure(std::string_view load, std::size_t point,
                                                const std::string& path) const {
  return median_figure(counting_runs(load, point), path);
}

std::optional<LoadFigure> median_figure(const std::vector<const Run*>& runs,
                                        const std::string& path) {
  constexpr double kSameFigure = 1.05;
  std::vector<double> least;
  std::vector<double> most;
  for (const Run* run : runs) {
    const Figure found = find_figure(*run, path);
    if (!found.value) continue;
    least.push_back(*found.value);
    most.push_back(found.at_least ? std::numeric_limits<double>::max() : *found.value);
  }
  const auto figure = median(least);
  if (!figure) return std::nullopt;
  return LoadFigure{*figure, *median(most) > kSameFigure * *figure};
}

std::optional<double> sum_of_figure(const std::vector<const Run*>& runs, const std::string& path) {
  double sum = 0;
  bool any = false;
  for (const Run* run : runs) {
    const auto value = figure(*run, path);
    sum += value.value_or(0);
    any = any || value.has_value();
  }
  return any ? std::optional(sum) : std::nullopt;
}

std::optional<double> ratio_of_sums(const std::vector<const Run*>& runs, const std::string& path,
                                    const std::string& whole_path) {
  const double whole = sum_of_figure(runs, whole_path).value_or(0);
  if (whole == 0) return std::nullopt;
  return std::min(1.0, sum_of_figure(runs, path).value_or(0) / whole);
}

std::vector<std::string> disturbances(const Run& run) {
  std::vector<std::string> found;
  for (const std::string& reason : run.generator.reasons) {
    if (!reason.starts_with(kNotTheLoadAskedFor)) found.push_back(reason);
  }
  return found;
}

bool is_of_the_lock(const Run& run) {
  return run.generator.valid || (!run.generator.reasons.empty() && disturbances(run).empty());
}

std::optional<double> served_share(const std::vector<const Run*>& runs) {
  double served = 0, unserved = 0, waiting = 0;
  for (const Run* run : runs) {
    const Outcomes& seen = run->outcomes;
    const std::uint64_t last = std::min(seen.abandoned, run->load.clients);
    served += static_cast<double>(seen.acquired);
    waiting += static_cast<double>(last);
    unserved += static_cast<double>(seen.timed_out + seen.refused + seen.failed + seen.unknown +
                                    seen.abandoned - last);
  }
  if (served + unserved + waiting == 0) return std::nullopt;
  return served == 0 ? 0 : served / (served + unserved);
}

std::optional<double> StrategyLoads::served_share(std::string_view load, std::size_t point) const {
  return results::served_share(counting_runs(load, point));
}

std::optional<double> StrategyLoads::least_served(std::string_view load) const {
  std::optional<double> least;
  for (std::size_t point = 0; point < points.size(); ++point) {
    const auto served = served_share(load, point);
    if (served) least = std::min(least.value_or(1), *served);
  }
  return least;
}

bool StrategyLoads::broke_exclusion() const {
  return std::any_of(runs.begin(), runs.end(), [](const Run* run) {
    return run->audit.verdict == Verdict::violated || run->audit.verdict == Verdict::unprotected;
  });
}

bool StrategyLoads::is_safe() const {
  return backend != "local" && !broke_exclusion() &&
         std::any_of(runs.begin(), runs.end(),
                     [](const Run* run) { return run->audit.verdict == Verdict::exclusive; });
}

std::vector<StrategyLoads> strategy_loads(const Result& result) {
  std::vector<Load> points;
  for (const std::string& load : load_names(result)) {
    const std::vector<Load> its = points_of(result, load);
    points.insert(points.end(), its.begin(), its.end());
  }
  std::vector<StrategyLoads> all;
  for (const Run& run : result.runs) {
    auto same = std::find_if(all.begin(), all.end(), [&](const StrategyLoads& one) {
      return one.strategy == run.strategy;
    });
    if (same == all.end()) {
      all.push_back({run.strategy, run.backend, {}, points});
      same = all.end() - 1;
    }
    same->runs.push_back(&run);
  }
  std::stable_sort(all.begin(), all.end(), [](const StrategyLoads& a, const StrategyLoads& b) {
    return std::tuple(a.backend == "local", a.backend) <
           std::tuple(b.backend == "local", b.backend);
  });
  return all;
}

std::vector<std::string> load_names(const Result& result) {
  std::vector<std::string> names;
  for (const Run& run : result.runs) {
    if (std::find(names.begin(), names.end(), run.load.name) != names.end()) continue;
    names.push_back(run.load.name);
  }
  return names;
}

std::vector<Load> points_of(const Result& result, std::string_view load) {
  std::vector<Load> points;
  for (const Run& run : result.runs) {
    if (!has_load(run, load)) continue;
    if (std::find(points.begin(), points.end(), run.load) == points.end()) {
      points.push_back(run.load);
    }
  }
  std::stable_sort(points.begin(), points.end(), before);
  return points;
}

Verdict worst_verdict(const std::vector<const Run*>& runs) {
  // From the best: a violation outweighs all, no audit outweighs a success.
  constexpr std::array kGravity{Verdict::exclusive, Verdict::untested, Verdict::unaudited,
                                Verdict::unprotected, Verdict::violated};
  const auto gravity = [&](const Run* run) {
    return std::find(kGravity.begin(), kGravity.end(), run->audit.verdict);
  };
  auto worst = kGravity.begin();
  for (const Run* run : runs) worst = std::max(worst, gravity(run));
  return *worst;
}

std::optional<double> round_trips(const StrategyLoads& strategy) {
  const auto acquire = [&](std::size_t point) {
    return strategy.figure("alone", point, "acquire.p50");
  };
  const auto release = [&](std::size_t point) {
    return strategy.figure("alone", point, "release.p50");
  };
  const auto near = strategy.runs_of("alone", 0), far = strategy.runs_of("alone", 1);
  if (near.empty() || far.empty() || !acquire(0) || !acquire(1)) return std::nullopt;
  const double longer = far.front()->load.rtt_seconds - near.front()->load.rtt_seconds;
  const auto released = [&](std::size_t point) {
    const auto found = release(point);
    return found ? found->value : 0;
  };
  return (acquire(1)->value + released(1) - acquire(0)->value - released(0)) / longer;
}

std::optional<LoadFigure> section_cost(const StrategyLoads& strategy) {
  const std::size_t farthest = strategy.points_of("alone") - 1;
  const auto acquire = strategy.figure("alone", farthest, "acquire.p50");
  if (!acquire) return std::nullopt;
  const auto release = strategy.figure("alone", farthest, "release.p50");
  return LoadFigure{acquire->value + (release ? release->value : 0), acquire->at_least};
}

std::optional<LoadFigure> demand_p99(const StrategyLoads& strategy) {
  return strategy.figure("demand", 0, "acquire.p99");
}

std::optional<double> share_of_ideal(const StrategyLoads& strategy, std::string_view load) {
  const auto rate = strategy.figure(load, 0, "sections_per_second");
  const auto runs = strategy.runs_of(load, 0);
  if (!rate || runs.front()->load.hold_seconds == 0) return std::nullopt;
  return rate->value * runs.front()->load.hold_seconds;
}

std::optional<double> handed_over(const StrategyLoads& strategy, std::string_view load) {
  return ratio_of_sums(strategy.counting_runs(load, 0), "direct_handoffs", "awaited_releases");
}

std::optional<double> overtakings(const StrategyLoads& strategy, std::string_view load) {
  return ratio_of_sums(strategy.counting_runs(load, 0), "overtakings", "outcomes.acquired");
}

std::optional<double> violations_per_million(const StrategyLoads& strategy) {
  std::uint64_t violations = 0, contended = 0;
  for (const Run* run : strategy.runs) {
    const Audit& audit = run->audit;
    violations += std::max({audit.lost_updates, audit.overlaps, audit.fence_regressions});
    contended += audit.contended_grants;
  }
  return most_per_million(violations, contended);
}

double known_scatter(std::string_view figure) {
  const bool waits = figure.starts_with("acquire") || figure.starts_with("fairness.by_client.") ||
                     figure.starts_with("transactions.acquire");
  const bool long_ones =
      figure.ends_with("p99") || figure.ends_with("p999") || figure.ends_with(".max");
  return (waits && long_ones) || figure == "fairness.longest_wait_seconds" ? kScatterOfWaits : 0;
}

std::vector<int> tiers(const std::vector<std::vector<double>>& values, double scatter) {
  std::vector<std::vector<double>> samples;
  samples.reserve(values.size());
  for (const auto& one : values) samples.push_back(logarithms(one));
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!samples[i].empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return *mean(samples[a]) < *mean(samples[b]);
  });
  std::vector<int> found(values.size(), 0);
  int tier = 0;
  std::size_t first = 0;
  for (const std::size_t item : order) {
    if (tier == 0 || told_apart(samples[first], samples[item], scatter)) {
      ++tier;
      first = item;
    }
    found[item] = tier;
  }
  return found;
}

std::vector<Place> places(const Result& result, std::string_view load) {
  std::vector<Place> found;
  std::vector<std::vector<double>> values;
  for (const StrategyLoads& strategy : strategy_loads(result)) {
    if (strategy.runs_of(load).empty()) continue;
    found.push_back({strategy.strategy});
    values.push_back(deciding_values(strategy, std::string(load)));
  }
  const std::vector<int> ranked = tiers(values, known_scatter(deciding_figure(load)));
  for (std::size_t i = 0; i < found.size(); ++i) found[i].tier = ranked[i];
  return found;
}

}  // namespace lockbench::results
