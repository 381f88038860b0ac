#include "results/stats/tiers.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "results/stats/figures.h"
#include "results/stats/load_figures.h"
#include "results/stats/significance.h"
#include "results/stats/statistics.h"

namespace lockbench::results {
namespace {

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
