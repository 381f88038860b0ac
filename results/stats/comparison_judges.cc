#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "results/stats/compared_items.h"
#include "results/stats/significance.h"
#include "results/stats/statistics.h"

namespace lockbench::results {
namespace {

/// Correlation of consecutive repetitions: the state of the machine (other work, clock rates,
/// caches) lasts longer than one of them, and the two results were measured in different states.
/// Measured by tests/bench/compare.sh on a busy machine.
constexpr double kCorrelation = 0.65;
/// Least relative difference of repetitions (a bucket's width, another memory layout), so that
/// figures that happen to repeat do not look exact.
constexpr double kLeastNoise = 0.005;
/// Relative difference of two runs of the same strategy under the same load.
constexpr double kRunToRun = 0.1;

/// Share of the allowed false alarms that figures with enough repetitions get at most, if figures
/// with fewer repetitions need some too.
constexpr double kMostOfAlarms = 0.9;

double least_noise(const Item& item) {
  if (item.relative && item.figure->kind != FigureKind::count) return kLeastNoise;
  const double size = (mean_of(item.of_a) + mean_of(item.of_b)) / 2;
  // Counts scatter at least as in a Poisson distribution.
  if (item.relative) return std::exp(-size / 2);
  return item.figure->kind == FigureKind::count ? std::sqrt(std::max(size, 0.0))
                                                : kLeastNoise * std::abs(size);
}

/// Numbers of the repetitions of A and of B, over all items.
struct Slots {
  std::vector<int> a, b;
};

Slots slots_of(const std::vector<Item>& items) {
  std::set<int> a;
  std::set<int> b;
  for (const Item& item : items) {
    if (!item.has_repetitions()) continue;
    for (const auto& [repetition, value] : item.of_a) a.insert(repetition);
    for (const auto& [repetition, value] : item.of_b) b.insert(repetition);
  }
  return {{a.begin(), a.end()}, {b.begin(), b.end()}};
}

Feature feature_of(const Item& item, const Slots& slots) {
  Feature feature;
  const auto add = [&](const std::vector<int>& repetitions, const Values& values) {
    for (const int repetition : repetitions) {
      const auto found = values.find(repetition);
      feature.values.push_back(found == values.end() ? std::nullopt : std::optional(found->second));
    }
  };
  add(slots.a, item.of_a);
  add(slots.b, item.of_b);
  feature.noise = least_noise(item);
  return feature;
}

/// Factor by which a standard error grows because repetitions are correlated: that of the mean of
/// an AR(1) process.
double correlation_factor(const Item& item) {
  const auto count = static_cast<double>(std::min(item.of_a.size(), item.of_b.size()));
  double sum = 1;
  double correlation = kCorrelation;
  for (double lag = 1; lag < count && correlation > 1e-6; ++lag, correlation *= kCorrelation) {
    sum += 2 * (1 - lag / count) * correlation;
  }
  return std::sqrt(sum);
}

/// The items with enough repetitions.
struct Repeated {
  std::vector<const Item*> items{};
  std::vector<Feature> features{};
  Slots slots;

  explicit Repeated(const std::vector<Item>& all) : slots(slots_of(all)) {
    for (const Item& item : all) {
      if (!item.has_repetitions()) continue;
      items.push_back(&item);
      features.push_back(feature_of(item, slots));
    }
  }
};

void judge_by_permutation(const Repeated& repeated, const PermutationTest& test,
                          std::optional<double> critical, std::vector<Difference>& differences) {
  std::vector<bool> in_b(repeated.slots.a.size(), false);
  in_b.resize(repeated.slots.a.size() + repeated.slots.b.size(), true);
  for (std::size_t i = 0; i < repeated.items.size(); ++i) {
    const Item& item = *repeated.items[i];
    Difference& difference = differences[item.place];
    const TwoSample sample = two_sample(repeated.features[i], in_b);
    const double factor = correlation_factor(item);
    difference.p = test.p_value(sample.t() / factor);
    if (critical) {
      set_interval(item, *critical * factor * sample.error, difference);
    } else {
      difference.finding = Finding::cannot_tell;
    }
  }
}

/// One side's variance of the mean, and the number of values that it is based on.
struct Side {
  double variance = 0, values = 0;
};

Side side_from_within(const Item& item, const StrategyRuns& strategy, const Values& values) {
  Side side;
  const double size = static_cast<double>(values.size());
  std::vector<double> seen;
  double within = 0;
  double between_runs = 0;
  for (const auto& [repetition, value] : values) {
    const double plain = item.relative ? std::exp(value) : value;
    const WithinRun run = within_run(*strategy.runs.at(repetition), *item.figure, plain);
    const bool is_count = item.figure->kind == FigureKind::count;
    const double scale = item.relative ? (is_count ? 1 / plain : 1) : is_count ? 1 : plain;
    within += std::pow(run.error * scale, 2) / size;
    between_runs += std::pow(kRunToRun * (item.relative ? 1 : plain), 2) / size;
    side.values += run.effective_values;
    seen.push_back(value);
  }
  const double between = std::pow(stddev(seen).value_or(0), 2);
  side.variance = (std::max(within, between) + between_runs) / size;
  return side;
}

void judge_from_within(const std::vector<Item>& items, std::size_t count, double alarms,
                       std::vector<Difference>& differences) {
  for (const Item& item : items) {
    if (item.has_repetitions()) continue;
    const Side a = side_from_within(item, *item.a, item.of_a);
    const Side b = side_from_within(item, *item.b, item.of_b);
    const double degrees = std::max(2.0, a.values + b.values - 2);
    const double critical =
        student_quantile(1 - alarms / (2 * static_cast<double>(count)), degrees);
    set_interval(item, critical * std::sqrt(a.variance + b.variance), differences[item.place]);
  }
}

/// `part`: share of the false alarms that figures with enough repetitions may have.
std::string why_nothing(const Slots& slots, double confidence, double part, double least) {
  const std::size_t a = slots.a.size();
  const std::size_t b = slots.b.size();
  const double within_reach = std::floor(1000 * (1 - least / part) + 1e-6) / 1000;
  const auto wanted = repetitions_for(part * (1 - confidence));
  return fmt::format(
      "{} repetitions cannot show anything at {:g} %: {}--confidence {} would",
      a == b ? fmt::format("{}", a) : fmt::format("{} and {}", a, b), 100 * confidence,
      wanted > std::min(a, b) ? fmt::format("--repeat {} or ", *wanted) : "", within_reach);
}

}  // namespace

std::string judge(const std::vector<Item>& items, double confidence,
                  std::vector<Difference>& differences) {
  const Repeated repeated(items);
  const std::size_t few = items.size() - repeated.items.size();
  const double alarms = 1 - confidence;
  if (repeated.items.empty()) {
    judge_from_within(items, few, alarms, differences);
    return "";
  }
  const PermutationTest test(repeated.features, repeated.slots.a.size());
  // Both kinds of figures share the false alarms: half each, unless so few repetitions need more.
  const double part = few > 0 ? kMostOfAlarms : 1;
  const double least = test.least_alarms();
  const double share = few > 0 ? std::clamp(least, alarms / 2, part * alarms) : alarms;
  const auto critical = test.critical(1 - share);
  judge_by_permutation(repeated, test, critical, differences);
  judge_from_within(items, few, critical ? alarms - share : alarms, differences);
  return critical ? "" : why_nothing(repeated.slots, confidence, part, least);
}

}  // namespace lockbench::results
