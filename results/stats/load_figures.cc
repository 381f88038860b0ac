#include "results/stats/load_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "results/file/loads.h"
#include "results/stats/figures.h"
#include "results/stats/statistics.h"

namespace lockbench::results {
namespace {

/// Nobody would act on a smaller difference.
constexpr double kTenth = 1.1;

std::vector<double> logarithms(std::vector<double> values) {
  // A wait of 0 counts as a nanosecond.
  for (double& value : values) value = std::log(std::max(value, 1e-9));
  return values;
}

/// The known scatter of the longest waits; rarer ones scatter at least as much.
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

/// The values of the figure that decides under this load, by repetition.
std::vector<double> deciding_values(const StrategyLoads& strategy, const std::string& load) {
  std::vector<double> values;
  const std::size_t point = load == "demand" ? 0 : strategy.points_of(load) - 1;
  const char* const decides = deciding_figure(load);
  for (const Run* run : valid_of(strategy.runs_at(load, point))) {
    const auto value = [&](const char* path) { return figure(*run, path); };
    std::optional<double> found = value(decides);
    if (!found) continue;
    if (load == "alone") *found += value("release.p50").value_or(0);
    values.push_back(*found);
  }
  return values;
}

/// Waits of the measured part that had not ended with it, less those that it took over from the
/// warm-up. Above one for each client, the lock did not keep up.
std::uint64_t left_behind(const Run& run) {
  const std::uint64_t granted = run.acquire.count, in_time = run.outcomes.acquired;
  return run.outcomes.abandoned + (granted > in_time ? granted - in_time : 0);
}

}  // namespace

std::size_t StrategyLoads::points_of(std::string_view load) const {
  const auto found = points.find(load);
  return found == points.end() ? 0 : found->second.size();
}

std::vector<const Run*> StrategyLoads::runs_of(std::string_view load) const {
  std::vector<const Run*> found = runs;
  std::erase_if(found, [&](const Run* run) { return run->load.name != load; });
  return found;
}

std::vector<const Run*> StrategyLoads::runs_at(std::string_view load, std::size_t point) const {
  if (point >= points_of(load)) return {};
  std::vector<const Run*> found = runs;
  const Load& at = points.find(load)->second[point];
  std::erase_if(found, [&](const Run* run) { return run->load != at; });
  return found;
}

std::vector<const Run*> valid_of(std::vector<const Run*> runs) {
  std::erase_if(runs, [](const Run* run) { return !is_of_the_lock(*run); });
  return runs;
}

std::vector<const Run*> counting_of(std::vector<const Run*> runs) {
  auto valid = valid_of(runs);
  return valid.empty() ? std::move(runs) : std::move(valid);
}

std::optional<LoadFigure> median_figure(const std::vector<const Run*>& runs,
                                        const std::string& path) {
  constexpr double kSameFigure = 1.05;
  std::vector<double> least, shown, most;
  for (const Run* run : runs) {
    const Figure found = find_figure(*run, path);
    if (!found.value) continue;
    least.push_back(*found.value);
    shown.push_back(found.at_least ? found.most : *found.value);
    most.push_back(found.most);
  }
  const auto figure = median(least);
  if (!figure) return std::nullopt;
  const double same = kSameFigure * *figure;
  return LoadFigure{*figure, *median(shown) > same, *median(most) > same};
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
  if (run.interrupted.value_or(false)) found.emplace_back("it was cut short");
  return found;
}

bool is_of_the_lock(const Run& run) {
  const bool has_reasons = !run.generator.reasons.empty();
  return (run.generator.valid || has_reasons) && disturbances(run).empty();
}

std::string disturbed_from_the_start(const std::vector<Run>& runs) {
  constexpr std::size_t kFirst = 3;
  if (runs.size() != kFirst || std::ranges::any_of(runs, is_of_the_lock)) return "";
  return fmt::format(
      "the first {} runs are invalid: {}. Invalid runs rank nothing: better repeat this on a "
      "machine without other work; Ctrl-C ends it with the table so far",
      kFirst, disturbances(runs.back()).empty() ? "" : disturbances(runs.back()).front());
}

std::optional<double> served_share(const std::vector<const Run*>& runs, bool of_waits) {
  double served = 0, unserved = 0, waiting = 0;
  for (const Run* run : runs) {
    const Outcomes& seen = run->outcomes;
    const std::uint64_t left = left_behind(*run);
    const std::uint64_t last = std::min(left, run->load.clients);
    served += static_cast<double>(seen.acquired);
    waiting += static_cast<double>(last);
    unserved += static_cast<double>(seen.timed_out + left - last);
    if (!of_waits) unserved += static_cast<double>(seen.refused + seen.failed + seen.unknown);
  }
  if (served + unserved + waiting == 0) return std::nullopt;
  return served == 0 ? 0 : served / (served + unserved);
}

bool StrategyLoads::broke_exclusion() const {
  return std::ranges::any_of(runs, [](const Run* run) {
    return run->audit.verdict == Verdict::violated || run->audit.verdict == Verdict::unprotected;
  });
}

bool StrategyLoads::counted() const {
  return !broke_exclusion() && std::ranges::any_of(runs, [](const Run* run) {
    return run->audit.verdict == Verdict::counted;
  });
}

bool StrategyLoads::is_safe() const {
  return backend != "local" && !broke_exclusion() && std::ranges::any_of(runs, [](const Run* run) {
           return run->audit.verdict == Verdict::exclusive;
         });
}

std::vector<StrategyLoads> strategy_loads(const Result& result) {
  const auto points = points_of(result);
  std::vector<StrategyLoads> all;
  for (const auto& [strategy, runs] : grouped(result.runs, &Run::strategy)) {
    all.push_back({strategy, runs.front()->backend, runs, points});
  }
  std::ranges::stable_sort(all, {}, [](const StrategyLoads& one) {
    return std::pair(one.backend == "local", one.backend);
  });
  return all;
}

std::map<std::string, std::vector<Load>, std::less<>> points_of(const Result& result) {
  std::map<std::string, std::vector<Load>, std::less<>> points;
  for (const Run& run : result.runs) {
    auto& its = points[run.load.name];
    if (std::ranges::find(its, run.load) == its.end()) its.push_back(run.load);
  }
  const auto order = [](const Load& load) {
    return std::tuple(load.rate.value_or(0), load.rtt_seconds);
  };
  for (auto& [name, its] : points) std::ranges::stable_sort(its, {}, order);
  return points;
}

Verdict worst_verdict(const std::vector<const Run*>& runs) {
  // From best to worst: a violation outweighs everything, a missing audit outweighs a success.
  constexpr std::array kGravity{Verdict::exclusive, Verdict::counted,     Verdict::untested,
                                Verdict::unaudited, Verdict::unprotected, Verdict::violated};
  const auto gravity = [&](const Run* run) {
    return std::ranges::find(kGravity, run->audit.verdict);
  };
  auto worst = kGravity.begin();
  for (const Run* run : runs) worst = std::max(worst, gravity(run));
  return *worst;
}

double known_scatter(std::string_view figure) {
  const bool waits = figure.starts_with("acquire") || figure.starts_with("fairness.by_client.") ||
                     figure.starts_with("transactions.acquire");
  const bool long_ones =
      figure.ends_with("p99") || figure.ends_with("p999") || figure.ends_with(".max");
  return (waits && long_ones) || figure == "fairness.longest_wait_seconds" ? kScatterOfWaits : 0;
}

std::vector<int> tiers(const std::vector<std::vector<double>>& values, double scatter) {
  const std::vector<std::vector<double>> samples = each_of(values, logarithms);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!samples[i].empty()) order.push_back(i);
  }
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return *mean(samples[a]) < *mean(samples[b]); });
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

std::map<std::string, int> tiers_under(const Result& result, std::string_view load) {
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;
  for (const StrategyLoads& strategy : strategy_loads(result)) {
    if (strategy.runs_of(load).empty()) continue;
    names.push_back(strategy.strategy);
    values.push_back(deciding_values(strategy, std::string(load)));
  }
  const std::vector<int> ranked = tiers(values, known_scatter(deciding_figure(load)));
  std::map<std::string, int> found;
  for (std::size_t i = 0; i < names.size(); ++i) found[names[i]] = ranked[i];
  return found;
}

}  // namespace lockbench::results
