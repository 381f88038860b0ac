#include "results/stats/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "results/stats/compared_figures.h"
#include "results/stats/compared_items.h"

namespace lockbench::results {
namespace {

/// Pairs the figures of each strategy in A and B. For a strategy without runs in B, only the
/// requested figures.
class Pairing {
 public:
  Pairing(const ComparisonOptions& options, bool same_version, ResultComparison& comparison)
      : figures_(compared_figures(options.more_figures)),
        asked_(options.more_figures.begin(), options.more_figures.end()),
        comparison_(comparison) {
    if (same_version) return;
    std::erase_if(figures_, [](const auto& one) { return changed_since_version_1(one.path); });
  }

  void add(const StrategyRuns& a, const StrategyRuns& b) {
    const bool is_in_b = !b.runs.empty();
    for (const ComparedFigure& figure : figures_) {
      const bool asked = asked_.contains(figure.path);
      if (!is_in_b && !asked) continue;
      Item item = make_item(a, b, figure);
      if (item.has_none()) {
        if (is_in_b && asked) comparison_.unmeasured[figure.path].push_back(a.name);
        continue;
      }
      if (never_happened(item)) continue;
      item.place = comparison_.differences.size();
      comparison_.differences.push_back(difference_of(item));
      if (item.has_both()) items_.push_back(std::move(item));
    }
  }

  /// The figures that both sides have. Valid as long as this object.
  const std::vector<Item>& items() const { return items_; }

 private:
  std::vector<ComparedFigure> figures_;
  const std::set<std::string> asked_;
  ResultComparison& comparison_;
  std::vector<Item> items_;
};

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

/// Notes the figures that have too few repetitions for a permutation test.
void note_few_repetitions(const std::vector<Item>& items, ResultComparison& comparison) {
  std::set<std::string> few;
  bool all = true;
  for (const Item& item : items) {
    if (!item.has_both()) continue;
    if (item.has_repetitions()) {
      all = false;
    } else {
      few.insert(item.figure->path);
    }
  }
  if (few.empty()) return;
  constexpr std::string_view kBut = "only large differences can be shown";
  comparison.notes.push_back(
      all ? fmt::format("fewer than {} repetitions: {} (--repeat 5 or more)", kEnoughRepetitions,
                        kBut)
          : fmt::format("{}: measured in fewer than {} repetitions, so that {}",
                        fmt::join(few, ", "), kEnoughRepetitions, kBut));
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
    case Finding::cannot_tell:
      return "too few repetitions to tell";
    case Finding::not_in_a:
      return "not measured in A";
    case Finding::not_in_b:
      return "not measured in B";
  }
  return "";
}

bool is_shown(Finding finding) {
  return finding == Finding::better || finding == Finding::worse || finding == Finding::higher ||
         finding == Finding::lower;
}

ResultComparison compare(const Result& a, const Result& b, const ComparisonOptions& options) {
  ResultComparison comparison{.confidence = options.confidence};
  const std::vector<StrategyRuns> of_a = strategies_of(a);
  const std::vector<StrategyRuns> of_b = strategies_of(b);
  std::map<std::string_view, const StrategyRuns*> in_b;
  for (const StrategyRuns& strategy : of_b) in_b.emplace(strategy.name, &strategy);

  const StrategyRuns nothing;
  Pairing pairing(options, a.version == b.version, comparison);
  std::set<std::string_view> common;
  for (const StrategyRuns& strategy : of_a) {
    const auto found = in_b.find(strategy.name);
    const bool is_in_b = found != in_b.end();
    if (is_in_b) {
      common.insert(strategy.name);
    } else {
      comparison.only_in_a.push_back(strategy.name);
    }
    pairing.add(strategy, is_in_b ? *found->second : nothing);
  }
  comparison.in_both = common.size();
  for (const StrategyRuns& strategy : of_b) {
    if (!common.contains(strategy.name)) comparison.only_in_b.push_back(strategy.name);
  }
  const std::vector<Item>& items = pairing.items();
  comparison.too_few = judge(items, options.confidence, comparison.differences);
  if (!comparison.too_few.empty()) comparison.notes.push_back(comparison.too_few);
  note_few_repetitions(items, comparison);
  if (a.version != b.version) {
    comparison.notes.push_back(fmt::format(
        "{} is a file of version 1: its acquire, handoff and longest wait leave out clients that "
        "were never served, and are not compared",
        a.version == 1 ? "A" : "B"));
  }
  add_notes(a, "A", comparison);
  add_notes(b, "B", comparison);
  return comparison;
}

}  // namespace lockbench::results
