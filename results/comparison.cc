#include "results/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "results/compared_figures.h"
#include "results/figures.h"
#include "results/significance.h"
#include "results/statistics.h"
#include "results/text.h"

namespace lockbench::results {
namespace {

/// With fewer on a side, no arrangement of them is rare enough to show anything.
constexpr std::size_t kEnoughRepetitions = 4;
/// How alike two repetitions are of which one follows the other: the machine's mood (other work,
/// clock rates, caches) outlasts them, more so between repetitions of one call than between two
/// calls, which no single comparison can see. Measured by tests/bench/compare.sh on a busy machine.
constexpr double kSharedMood = 0.65;
/// By how much repetitions differ at the least, as a share: a bucket's width, a page in another
/// place. Keeps figures that happen to repeat from looking exact.
constexpr double kLeastNoise = 0.005;
/// By how much two single runs differ for no reason, as a share.
constexpr double kRunToRun = 0.1;

using Values = std::map<int, double>;  ///< by repetition

struct Strategy {
  std::string name;
  std::map<int, const Run*> runs;
  std::map<int, std::map<std::string, double, std::less<>>> figures;
};

/// In the order of their first runs. Of two runs of one repetition the later one counts.
std::vector<Strategy> strategies_of(const Result& result) {
  std::vector<Strategy> strategies;
  std::map<std::string_view, std::size_t> places;
  for (const Run& run : result.runs) {
    const auto [place, is_new] = places.emplace(run.strategy, strategies.size());
    if (is_new) strategies.push_back({run.strategy, {}, {}});
    Strategy& strategy = strategies[place->second];
    strategy.runs[run.repetition] = &run;
    auto& numbers = strategy.figures[run.repetition];
    numbers.clear();
    for (const Figure& figure : figures(run)) {
      if (figure.value) numbers[figure.path] = *figure.value;
    }
  }
  return strategies;
}

Values values_of(const Strategy& strategy, const std::string& path) {
  Values values;
  for (const auto& [repetition, numbers] : strategy.figures) {
    if (const auto found = numbers.find(path); found != numbers.end()) {
      values[repetition] = found->second;
    }
  }
  return values;
}

/// One figure of one strategy, on its way to a Difference.
struct Item {
  const Strategy* a = nullptr;
  const Strategy* b = nullptr;
  const ComparedFigure* figure = nullptr;
  Values of_a, of_b;  ///< logarithms where relative
  bool relative = false;

  bool has_repetitions() const { return std::min(of_a.size(), of_b.size()) >= kEnoughRepetitions; }
};

double mean_of(const Values& values) {
  double sum = 0;
  for (const auto& [repetition, value] : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<Item> make_item(const Strategy& a, const Strategy& b, const ComparedFigure& figure) {
  Item item{&a, &b, &figure, values_of(a, figure.path), values_of(b, figure.path), true};
  if (item.of_a.empty() || item.of_b.empty()) return std::nullopt;
  for (const Values* side : {&item.of_a, &item.of_b}) {
    for (const auto& [repetition, value] : *side) item.relative = item.relative && value > 0;
  }
  // What happened on neither side is nothing to compare.
  if (!item.relative && std::abs(mean_of(item.of_a)) + std::abs(mean_of(item.of_b)) == 0) {
    return std::nullopt;
  }
  if (item.relative) {
    for (Values* side : {&item.of_a, &item.of_b}) {
      for (auto& [repetition, value] : *side) value = std::log(value);
    }
  }
  return item;
}

double least_noise(const Item& item) {
  if (item.relative && item.figure->kind != FigureKind::count) return kLeastNoise;
  const double size = (mean_of(item.of_a) + mean_of(item.of_b)) / 2;
  // Counts scatter at least as Poisson's do.
  if (item.relative) return std::exp(-size / 2);
  return item.figure->kind == FigureKind::count ? std::sqrt(std::max(size, 0.0))
                                                : kLeastNoise * std::abs(size);
}

Difference difference_of(const Item& item) {
  Difference difference;
  difference.strategy = item.a->name;
  difference.figure = item.figure->path;
  difference.kind = item.figure->kind;
  difference.relative = item.relative;
  const double a = mean_of(item.of_a);
  const double b = mean_of(item.of_b);
  difference.a = item.relative ? std::exp(a) : a;
  difference.b = item.relative ? std::exp(b) : b;
  difference.change = item.relative ? std::expm1(b - a) : b - a;
  return difference;
}

/// `half` on the scale of the item's values.
void set_interval(const Item& item, double half, Difference& difference) {
  const double center = mean_of(item.of_b) - mean_of(item.of_a);
  const auto shown = [&](double value) { return item.relative ? std::expm1(value) : value; };
  difference.low = shown(center - half);
  difference.high = shown(center + half);
  if (!(std::abs(center) > half)) return;
  const bool higher = center > 0;
  switch (item.figure->good) {
    case Good::unknown:
      difference.finding = higher ? Finding::higher : Finding::lower;
      break;
    case Good::higher:
      difference.finding = higher ? Finding::better : Finding::worse;
      break;
    case Good::lower:
      difference.finding = higher ? Finding::worse : Finding::better;
      break;
  }
}

/// Repetitions of A and of B, whatever their numbers, over all items.
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

/// By what a standard error grows because repetitions are no independent sample: as the mean of an
/// AR(1) process does.
double mood_factor(const Item& item) {
  const auto count = static_cast<double>(std::min(item.of_a.size(), item.of_b.size()));
  double sum = 1;
  double alike = kSharedMood;
  for (double lag = 1; lag < count && alike > 1e-6; ++lag, alike *= kSharedMood) {
    sum += 2 * (1 - lag / count) * alike;
  }
  return std::sqrt(sum);
}

void judge_by_permutation(const std::vector<Item>& items, double confidence,
                          std::vector<Difference>& differences) {
  const Slots slots = slots_of(items);
  std::vector<Feature> features;
  for (const Item& item : items) {
    if (item.has_repetitions()) features.push_back(feature_of(item, slots));
  }
  if (features.empty()) return;
  std::vector<bool> in_b(slots.a.size(), false);
  in_b.resize(slots.a.size() + slots.b.size(), true);
  const PermutationTest test(features, slots.a.size());
  const auto critical = test.critical(confidence);
  std::size_t next = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].has_repetitions()) continue;
    const TwoSample sample = two_sample(features[next++], in_b);
    const double factor = mood_factor(items[i]);
    differences[i].p = test.p_value(sample.t() / factor);
    if (critical) set_interval(items[i], *critical * factor * sample.error, differences[i]);
  }
}

/// One side's variance of the mean, and how many values it rests on.
struct Side {
  double variance = 0, values = 0;
};

Side side_from_within(const Item& item, const Strategy& strategy, const Values& values) {
  Side side;
  const double size = static_cast<double>(values.size());
  std::vector<double> seen;
  double within = 0;
  double reason = 0;  // that two runs differ without
  for (const auto& [repetition, value] : values) {
    const double plain = item.relative ? std::exp(value) : value;
    const WithinRun run = within_run(*strategy.runs.at(repetition), *item.figure, plain);
    const bool is_count = item.figure->kind == FigureKind::count;
    const double scale = item.relative ? (is_count ? 1 / plain : 1) : is_count ? 1 : plain;
    within += std::pow(run.error * scale, 2) / size;
    reason += std::pow(kRunToRun * (item.relative ? 1 : plain), 2) / size;
    side.values += run.effective_values;
    seen.push_back(value);
  }
  const double between = std::pow(stddev(seen).value_or(0), 2);
  side.variance = (std::max(within, between) + reason) / size;
  return side;
}

void judge_from_within(const std::vector<Item>& items, double confidence,
                       std::vector<Difference>& differences) {
  const auto count = static_cast<double>(std::count_if(
      items.begin(), items.end(), [](const Item& item) { return !item.has_repetitions(); }));
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    if (item.has_repetitions()) continue;
    const Side a = side_from_within(item, *item.a, item.of_a);
    const Side b = side_from_within(item, *item.b, item.of_b);
    const double degrees = std::max(2.0, a.values + b.values - 2);
    const double critical = student_quantile(1 - (1 - confidence) / (2 * count), degrees);
    set_interval(item, critical * std::sqrt(a.variance + b.variance), differences[i]);
  }
}

void add_notes(const Result& result, std::string_view name, ResultComparison& comparison) {
  if (result.interrupted) {
    comparison.notes.push_back(fmt::format("{} was interrupted", name));
  }
  const auto invalid = std::count_if(result.runs.begin(), result.runs.end(),
                                     [](const Run& run) { return !run.generator.valid; });
  if (invalid > 0) {
    comparison.notes.push_back(
        fmt::format("{} of {} runs of {} {} invalid: their figures may not be the lock's", invalid,
                    result.runs.size(), name, invalid == 1 ? "is" : "are"));
  }
}

}  // namespace

std::string_view to_string(Finding finding) {
  switch (finding) {
    case Finding::none_shown:
      return "no difference that can be shown";
    case Finding::better:
      return "better";
    case Finding::worse:
      return "worse";
    case Finding::higher:
      return "higher";
    case Finding::lower:
      return "lower";
  }
  return "";
}

ResultComparison compare(const Result& a, const Result& b, const ComparisonOptions& options) {
  ResultComparison comparison{.confidence = options.confidence};
  const std::vector<Strategy> of_a = strategies_of(a);
  const std::vector<Strategy> of_b = strategies_of(b);
  const std::vector<ComparedFigure> figures = compared_figures(options.more_figures);
  std::map<std::string_view, const Strategy*> in_b;
  for (const Strategy& strategy : of_b) in_b.emplace(strategy.name, &strategy);

  std::vector<Item> items;
  std::set<std::string_view> common;
  for (const Strategy& strategy : of_a) {
    const auto found = in_b.find(strategy.name);
    if (found == in_b.end()) {
      comparison.only_in_a.push_back(strategy.name);
      continue;
    }
    common.insert(strategy.name);
    for (const ComparedFigure& figure : figures) {
      if (auto item = make_item(strategy, *found->second, figure))
        items.push_back(std::move(*item));
    }
  }
  for (const Strategy& strategy : of_b) {
    if (!common.contains(strategy.name)) comparison.only_in_b.push_back(strategy.name);
  }
  for (const Item& item : items) comparison.differences.push_back(difference_of(item));

  const auto few = std::count_if(items.begin(), items.end(),
                                 [](const Item& item) { return !item.has_repetitions(); });
  const auto many = static_cast<std::ptrdiff_t>(items.size()) - few;
  // Both kinds share the false alarms that are allowed.
  const double confidence =
      few > 0 && many > 0 ? 1 - (1 - options.confidence) / 2 : options.confidence;
  judge_by_permutation(items, confidence, comparison.differences);
  judge_from_within(items, confidence, comparison.differences);
  if (few > 0) {
    comparison.notes.push_back(fmt::format(
        "fewer than {} repetitions: only large differences can be shown (--repeat 5 or more)",
        kEnoughRepetitions));
  }
  add_notes(a, "A", comparison);
  add_notes(b, "B", comparison);
  return comparison;
}

}  // namespace lockbench::results
