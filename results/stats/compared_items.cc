#include "results/stats/compared_items.h"

#include <cmath>
#include <limits>
#include <string_view>

#include "results/file/loads.h"
#include "results/stats/figures.h"

namespace lockbench::results {
namespace {

Values values_of(const StrategyRuns& strategy, const std::string& path) {
  Values values;
  for (const auto& [repetition, numbers] : strategy.figures) {
    if (const auto found = numbers.find(path); found != numbers.end()) {
      values[repetition] = found->second;
    }
  }
  return values;
}

}  // namespace

std::vector<StrategyRuns> strategies_of(const Result& result) {
  std::vector<StrategyRuns> strategies;
  std::map<std::string, std::size_t> places;
  for (const Run& run : result.runs) {
    const std::string name = name_of(run, result);
    const auto [place, is_new] = places.emplace(name, strategies.size());
    if (is_new) strategies.push_back({.name = name});
    StrategyRuns& strategy = strategies[place->second];
    auto& numbers = strategy.figures[run.repetition];
    numbers.clear();
    for (const Figure& figure : figures(run)) {
      if (figure.value) numbers[figure.path] = *figure.value;
      if (figure.value && figure.at_least) strategy.at_least.insert(figure.path);
    }
  }
  return strategies;
}

Item make_item(const StrategyRuns& a, const StrategyRuns& b, const ComparedFigure& figure) {
  Item item{&a, &b, &figure, values_of(a, figure.path), values_of(b, figure.path)};
  for (const Values* side : {&item.of_a, &item.of_b}) {
    for (const auto& [repetition, value] : *side) item.relative = item.relative && value > 0;
  }
  if (item.relative) {
    for (Values* side : {&item.of_a, &item.of_b}) {
      for (auto& [repetition, value] : *side) value = std::log(value);
    }
  }
  return item;
}

double mean_of(const Values& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const auto& [repetition, value] : values) sum += value;
  return sum / static_cast<double>(values.size());
}

bool never_happened(const Item& item) {
  return !item.relative && std::abs(mean_of(item.of_a)) + std::abs(mean_of(item.of_b)) == 0;
}

Difference difference_of(const Item& item) {
  Difference difference;
  difference.strategy = item.a->name;
  difference.figure = item.figure->path;
  difference.unit = item.figure->unit;
  difference.relative = item.relative;
  const double a = mean_of(item.of_a);
  const double b = mean_of(item.of_b);
  difference.a = item.relative ? std::exp(a) : a;
  difference.b = item.relative ? std::exp(b) : b;
  difference.a_at_least = item.a->at_least.contains(item.figure->path);
  difference.b_at_least = item.b->at_least.contains(item.figure->path);
  difference.change = item.relative ? std::expm1(b - a) : b - a;
  if (item.of_a.empty()) difference.finding = Finding::not_in_a;
  if (item.of_b.empty()) difference.finding = Finding::not_in_b;
  return difference;
}

void set_interval(const Item& item, const Interval& change, Difference& difference) {
  const auto shown = [&](double value) { return item.relative ? std::expm1(value) : value; };
  difference.low = shown(change.low);
  difference.high = shown(change.high);
}

void set_finding(const Item& item, bool shown, Difference& difference) {
  if (!(*difference.low > 0 || *difference.high < 0)) return;
  const bool higher = difference.change > 0;
  if (!shown) {
    difference.finding = Finding::may_be_chance;
  } else if (item.figure->good == Good::unknown) {
    difference.finding = higher ? Finding::higher : Finding::lower;
  } else {
    difference.finding =
        higher == (item.figure->good == Good::higher) ? Finding::better : Finding::worse;
  }
}

}  // namespace lockbench::results
