#include "results/stats/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
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
  Pairing(const ComparisonOptions& options, ResultComparison& comparison)
      : gates_(options.fail_on), comparison_(comparison) {
    std::vector<std::string> asked;
    for (const Regression& gate : gates_) asked.push_back(gate.figure);
    figures_ = compared_figures(asked);
  }

  void add(const StrategyRuns& a, const StrategyRuns& b) {
    const bool is_in_b = !b.figures.empty();
    for (const ComparedFigure& figure : figures_) {
      std::vector<const Regression*> gates;
      for (const Regression& gate : gates_) {
        if (gate.figure == figure.path) gates.push_back(&gate);
      }
      if (!is_in_b && gates.empty()) continue;
      Item item = make_item(a, b, figure);
      if (item.has_none()) {
        if (is_in_b && !gates.empty()) comparison_.unmeasured[figure.path].push_back(a.name);
        continue;
      }
      if (!gates.empty() && item.has_both() && !item.has_repetitions()) refuse_gate(item);
      if (never_happened(item)) continue;
      item.place = comparison_.differences.size();
      comparison_.differences.push_back(difference_of(item));
      if (!item.has_both()) {
        for (const Regression* gate : gates) {
          comparison_.gates.push_back(
              {*gate, a.name,
               item.of_b.empty() ? Gate::Outcome::not_measured : Gate::Outcome::not_excluded,
               item.place, std::nullopt});
        }
      }
      item.gates = std::move(gates);
      if (item.has_both()) items_.push_back(std::move(item));
    }
  }

  /// The figures that both sides have. Valid as long as this object.
  const std::vector<Item>& items() const { return items_; }

 private:
  void refuse_gate(const Item& item) {
    if (!comparison_.gates_undecided.empty()) return;
    comparison_.gates_undecided = fmt::format(
        "{} of {} was measured in {} {} of A and {} of B: {} of each are needed (--repeat)",
        item.figure->path, item.a->name, item.of_a.size(),
        item.of_a.size() == 1 ? "repetition" : "repetitions", item.of_b.size(), kEnoughRepetitions);
  }

  const std::vector<Regression>& gates_;
  std::vector<ComparedFigure> figures_;
  ResultComparison& comparison_;
  std::vector<Item> items_;
};

void add_doubts(const Result& result, std::string_view name, ResultComparison& comparison) {
  if (result.interrupted) {
    comparison.doubts.push_back(fmt::format("{} was interrupted", name));
  }
  const auto invalid = std::count_if(result.runs.begin(), result.runs.end(),
                                     [](const Run& run) { return !run.generator.valid; });
  if (invalid > 0) {
    comparison.doubts.push_back(
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

/// Notes the figures that may be larger than what was seen of them.
void note_lower_bounds(ResultComparison& comparison) {
  std::set<std::string_view> figures;
  for (const Difference& one : comparison.differences) {
    if (one.a_at_least || one.b_at_least) figures.insert(one.figure);
  }
  if (figures.empty()) return;
  comparison.notes.push_back(
      fmt::format("≥: waits were cut off, so the figure may be larger and its change another one: "
                  "{}",
                  fmt::join(figures, ", ")));
}

/// A gate on a figure that no strategy has.
void add_unmeasured_gates(const std::vector<Regression>& gates, ResultComparison& comparison) {
  for (const Regression& gate : gates) {
    const auto found = comparison.unmeasured.find(gate.figure);
    if (found == comparison.unmeasured.end() || found->second.size() < comparison.in_both ||
        std::any_of(comparison.differences.begin(), comparison.differences.end(),
                    [&](const Difference& one) { return one.figure == gate.figure; })) {
      continue;
    }
    comparison.gates.push_back({gate, "", Gate::Outcome::not_measured, {}, {}});
  }
}

/// Notes how many intervals leave out no change without a finding.
void note_chance(std::size_t figures, ResultComparison& comparison) {
  const auto count =
      std::count_if(comparison.differences.begin(), comparison.differences.end(),
                    [](const Difference& one) { return one.finding == Finding::may_be_chance; });
  if (count == 0) return;
  const double expected = (1 - comparison.confidence) * static_cast<double>(figures);
  comparison.notes.push_back(
      fmt::format("may be chance: {} of {} intervals leave out no change without a finding; about "
                  "{:.0f} would if nothing had changed",
                  count, figures, expected));
}

}  // namespace

std::string_view to_string(Gate::Outcome outcome) {
  constexpr std::array<std::string_view, 4> kNames{"kept", "cannot be excluded", "regression",
                                                   "not measured"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

std::string_view to_string(Finding finding) {
  constexpr std::array<std::string_view, 9> kNames{"no difference that can be shown",
                                                   "may be chance",
                                                   "better",
                                                   "worse",
                                                   "higher",
                                                   "lower",
                                                   "too few repetitions to tell",
                                                   "not measured in A",
                                                   "not measured in B"};
  return kNames.at(static_cast<std::size_t>(finding));
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
  Pairing pairing(options, comparison);
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
  add_unmeasured_gates(options.fail_on, comparison);
  const std::vector<Item>& items = pairing.items();
  if (!items.empty()) judge(items, comparison);
  note_few_repetitions(items, comparison);
  note_lower_bounds(comparison);
  note_chance(items.size(), comparison);
  add_doubts(a, "A", comparison);
  add_doubts(b, "B", comparison);
  comparison.notes.insert(comparison.notes.end(), comparison.doubts.begin(),
                          comparison.doubts.end());
  return comparison;
}

}  // namespace lockbench::results
