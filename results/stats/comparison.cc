#include "results/stats/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>

#include "results/file/loads.h"
#include "results/stats/figures.h"
#include "results/stats/load_figures.h"
#include "results/stats/statistics.h"

namespace lockbench::results {
namespace {

/// The first family of figures if there are no gates.
constexpr std::array<std::string_view, 2> kHeadline{"sections_per_second", "acquire.p99"};
/// The share of the false alarms that the first family may raise: enough for five repetitions to
/// show a difference of three strategies.
constexpr double kShareOfFirst = 0.96;
/// No smaller change is shown: percentiles have an error of up to 0.8 %.
constexpr double kLeastChange = 0.01;
/// The power with which a gate detects its detectable change.
constexpr double kPower = 0.8;

/// A strategy in one result. The runs are of that result.
struct StrategyRuns {
  std::string name;
  std::map<int, const Run*> by_repetition{};
  bool left_out = false;  ///< some of its runs are invalid, and do not count

  std::vector<const Run*> runs() const {
    return each_of(by_repetition, [](const auto& one) { return one.second; });
  }
  std::vector<double> values_of(const std::string& path) const {
    std::vector<double> values;
    for (const auto& [repetition, run] : by_repetition) {
      if (const auto value = figure(*run, path)) values.push_back(*value);
    }
    return values;
  }
  /// Whether the median may be larger, as waits were cut off.
  bool is_at_least(const std::string& path) const {
    const auto figure = median_figure(runs(), path);
    return figure && figure->at_least;
  }
};

/// In the order of their first runs. Of two runs of one repetition, the later counts.
std::vector<StrategyRuns> strategies_of(const Result& result, bool with_invalid) {
  std::vector<StrategyRuns> strategies;
  const auto name = [&](const Run& run) { return name_of(run, result); };
  for (const auto& [its_name, runs] : grouped(result.runs, name)) {
    StrategyRuns& strategy = strategies.emplace_back(StrategyRuns{.name = its_name});
    for (const Run* run : runs) {
      if (with_invalid || is_of_the_lock(*run)) {
        strategy.by_repetition[run->repetition] = run;
      } else {
        strategy.left_out = true;
      }
    }
  }
  return strategies;
}

/// One figure of one strategy, and its finding.
struct Item {
  ComparedFigure figure;
  std::vector<double> a, b;  ///< by repetition; logarithms where relative
  bool left_out = false;     ///< invalid runs, of a side without another one
  Difference found{};
  std::vector<const Regression*> gates{};

  bool has_both() const { return !a.empty() && !b.empty(); }
  bool has_repetitions() const { return std::min(a.size(), b.size()) >= kFewestRepetitions; }
  double shown(double change) const { return found.relative ? std::expm1(change) : change; }
  template <class Predicate>
  bool all_values(Predicate are) const {
    return std::ranges::all_of(a, are) && std::ranges::all_of(b, are);
  }
};

/// Everything but p, and the finding as far as it follows without p.
Item make_item(const StrategyRuns& a, const StrategyRuns& b, const ComparedFigure& figure,
               double confidence) {
  Item item{figure, a.values_of(figure.path), b.values_of(figure.path)};
  Difference& found = item.found;
  found = {.strategy = a.name,
           .figure = figure.path,
           .unit = figure.unit,
           .a_at_least = a.is_at_least(figure.path),
           .b_at_least = b.is_at_least(figure.path),
           .relative = item.all_values([](double value) { return value > 0; })};
  const auto center_of = [&](std::vector<double>& values) {
    if (found.relative) {
      for (double& value : values) value = std::log(value);
    }
    return median(values).value_or(std::numeric_limits<double>::quiet_NaN());
  };
  const double center_a = center_of(item.a), center_b = center_of(item.b);
  found.a = found.relative ? std::exp(center_a) : center_a;
  found.b = found.relative ? std::exp(center_b) : center_b;
  found.change = item.shown(center_b - center_a);
  item.left_out = (item.a.empty() && a.left_out) || (item.b.empty() && b.left_out);
  if (!item.has_both()) {
    found.finding = item.a.empty() ? Finding::not_in_a : Finding::not_in_b;
  } else if (!item.has_repetitions()) {
    found.finding = Finding::too_few;
  } else {
    const Interval change = bootstrap_interval(item.a, item.b, confidence);
    found.low = item.shown(change.low);
    found.high = item.shown(change.high);
  }
  return item;
}

/// A figure, and the side on which a difference is tested.
struct Test {
  Item* item;
  Side side;
};

/// Tests that share a probability of false alarms.
struct Family {
  std::vector<Test> tests;
  double alarms = 0;

  /// The smallest p that any of the tests can reach, times their number. Above `alarms`, no test
  /// can show anything.
  double reach() const {
    double least = 1;
    for (const auto& [item, side] : tests) {
      least = std::min(least, least_p(item->a.size(), item->b.size(), side));
    }
    return least * static_cast<double>(tests.size());
  }
};

Finding finding_of(const Item& item) {
  const bool more = item.found.change > 0;
  if (item.figure.good == Good::unknown) return more ? Finding::higher : Finding::lower;
  return more == (item.figure.good == Good::higher) ? Finding::better : Finding::worse;
}

/// Whether the change is large enough to matter, and its interval excludes zero.
bool has_changed(const Difference& one) {
  const bool noticeable =
      !one.relative || one.unit == Unit::count || std::abs(one.change) >= kLeastChange;
  return noticeable && (*one.low > 0 || *one.high < 0);
}

/// Holm's procedure: the least p against the alarms shared by all, the next by all but one, ...
void judge(const Family& family, double all_alarms) {
  const bool can_tell = family.reach() <= family.alarms;
  std::vector<std::pair<double, const Test*>> order;
  for (const Test& test : family.tests) {
    order.emplace_back(permutation_p(test.item->a, test.item->b, test.side), &test);
  }
  std::ranges::sort(order);
  double adjusted = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& [p, test] = order[i];
    const double left = static_cast<double>(order.size() - i);
    adjusted = std::min(1.0, std::max(adjusted, p * left * all_alarms / family.alarms));
    Difference& one = test->item->found;
    const bool is_other_side =
        test->side != Side::both && (test->side == Side::above) != (one.change > 0);
    if (is_other_side) continue;
    one.p = adjusted;
    if (!can_tell) {
      one.finding = Finding::too_few;
    } else if (adjusted <= all_alarms && has_changed(one)) {
      one.finding = finding_of(*test->item);
    }
  }
}

/// Repetitions on each side that so many tests need to show anything; nothing if 100 or more.
std::optional<std::size_t> repetitions_for(std::size_t tests, double alarms, Side side) {
  constexpr std::size_t kMost = 100;
  for (std::size_t count = kFewestRepetitions; count < kMost; ++count) {
    if (least_p(count, count, side) * static_cast<double>(tests) <= alarms) return count;
  }
  return std::nullopt;
}

std::string why_nothing(const Family& family, double confidence) {
  const Item& item = *family.tests.front().item;
  const auto wanted =
      repetitions_for(family.tests.size(), family.alarms, family.tests.front().side);
  return fmt::format(
      "{} and {} repetitions cannot show anything of {} figures at {:g} %: {}", item.a.size(),
      item.b.size(), family.tests.size(), 100 * confidence,
      wanted ? fmt::format("--repeat {} would", *wanted) : "compare fewer strategies");
}

/// The smallest change on the gate's side that is found with kPower: significant, and beyond the
/// bound.
double detectable(const Regression& gate, const Item& item, double alarms, double bound) {
  const Welch sample = welch(item.a, item.b);
  const double error = std::sqrt(std::numbers::pi / 2) * sample.error;  // medians' against means'
  const double beyond = std::abs(item.found.relative ? std::log1p(std::max(bound, -1.0)) : bound);
  const double change = std::max(student_quantile(1 - alarms, sample.degrees) * error, beyond) +
                        student_quantile(kPower, sample.degrees) * error;
  return item.shown(gate.more ? change : -change);
}

Gate judged(const Regression& gate, const Item& item, std::size_t place, double alarms) {
  const Difference& one = item.found;
  Gate made{gate, one.strategy, Gate::Outcome::not_excluded, place, std::nullopt, ""};
  if (item.left_out) made.undecided = "no run is valid";
  if (item.b.empty() && !item.left_out) made.outcome = Gate::Outcome::not_measured;
  if (!item.has_repetitions()) return made;
  const double bound = bound_of(gate, one);
  const auto is_beyond = [&](double change) { return gate.more ? change > bound : change < bound; };
  // A cut-off figure may be larger than seen. For a gate on increases, a larger A may mean that
  // there is no regression, a larger B that there is one.
  const bool may_be_kept = gate.more ? one.a_at_least : one.b_at_least;
  const bool may_be_missed = gate.more ? one.b_at_least : one.a_at_least;
  const bool missed = is_shown(one.finding) && is_beyond(one.change);
  const bool kept = !is_beyond(gate.more ? *one.high : *one.low);
  if ((missed && may_be_kept) || (kept && may_be_missed)) {
    made.undecided = "waits were cut off: a longer --duration or --acquire-timeout would decide it";
  } else if (missed) {
    made.outcome = Gate::Outcome::regression;
  } else if (kept) {
    made.outcome = Gate::Outcome::kept;
  }
  made.detectable = detectable(gate, item, alarms, bound);
  return made;
}

/// The figures that A and B are compared by, and the gates on them.
class Pairing {
 public:
  Pairing(const ComparisonOptions& options, ResultComparison& comparison)
      : gates_(options.fail_on),
        figures_(compared_figures(each_of(gates_, &Regression::figure))),
        comparison_(comparison) {}

  /// For a strategy without runs in B, only the figures of gates.
  void add(const StrategyRuns& a, const StrategyRuns& b) {
    const bool is_in_b = !b.by_repetition.empty() || b.left_out;
    for (const ComparedFigure& figure : figures_) {
      std::vector<const Regression*> gates;
      for (const Regression& gate : gates_) {
        if (gate.figure == figure.path) gates.push_back(&gate);
      }
      if (!is_in_b && gates.empty()) continue;
      Item item = make_item(a, b, figure, comparison_.confidence);
      if (item.a.empty() && item.b.empty()) {
        if (is_in_b && !gates.empty()) comparison_.unmeasured[figure.path].push_back(a.name);
        continue;
      }
      measured_.insert(figure.path);
      // A count of events that never happened needs no test.
      const bool never = item.all_values([](double value) { return value == 0; });
      if (never && gates.empty()) continue;
      if (never && item.has_both()) {
        for (const Regression* gate : gates) {
          comparison_.gates.push_back({*gate, a.name, Gate::Outcome::kept, {}, {}, {}});
        }
        continue;
      }
      item.gates = std::move(gates);
      items_.push_back(std::move(item));
    }
  }

  void judge_all() {
    const double alarms = 1 - comparison_.confidence;
    Family first, others;
    for (Item& item : items_) {
      if (item.has_repetitions()) add_tests(item, first, others);
    }
    first.alarms = others.tests.empty() ? alarms : kShareOfFirst * alarms;
    others.alarms = alarms - (first.tests.empty() ? 0 : first.alarms);
    for (const Family* family : {&first, &others}) judge(*family, alarms);
    if (!first.tests.empty() && first.reach() > first.alarms) {
      const std::string why = why_nothing(first, comparison_.confidence);
      comparison_.notes.push_back(why);
      if (!gates_.empty()) comparison_.gates_undecided = why;
    }
    const double share =
        first.alarms / static_cast<double>(std::max<std::size_t>(1, first.tests.size()));
    for (std::size_t place = 0; place < items_.size(); ++place) {
      const Item& item = items_[place];
      if (!item.gates.empty() && item.has_both() && !item.has_repetitions()) refuse_gate(item);
      for (const Regression* gate : item.gates) {
        comparison_.gates.push_back(judged(*gate, item, place, share));
      }
    }
    // Gates on figures that no strategy has.
    for (const Regression& gate : gates_) {
      if (!measured_.contains(gate.figure) && comparison_.unmeasured.contains(gate.figure)) {
        comparison_.gates.push_back({gate, "", Gate::Outcome::not_measured, {}, {}, {}});
      }
    }
    note_few_repetitions();
    for (Item& item : items_) comparison_.differences.push_back(std::move(item.found));
  }

 private:
  void add_tests(Item& item, Family& first, Family& others) const {
    if (gates_.empty()) {
      const bool leads = std::ranges::find(kHeadline, item.figure.path) != kHeadline.end();
      (leads ? first : others).tests.push_back({&item, Side::both});
      return;
    }
    bool above = false, below = false;
    for (const Regression* gate : item.gates) (gate->more ? above : below) = true;
    const auto side_of = [](bool up, bool down) {
      return up && down ? Side::both : up ? Side::above : Side::below;
    };
    if (above || below) first.tests.push_back({&item, side_of(above, below)});
    if (!above || !below) others.tests.push_back({&item, side_of(!above, !below)});
  }

  void refuse_gate(const Item& item) {
    if (!comparison_.gates_undecided.empty()) return;
    comparison_.gates_undecided = fmt::format(
        "{} of {} was measured in {} repetitions of A and {} of B: at least {} of each are needed "
        "(--repeat)",
        item.figure.path, item.found.strategy, item.a.size(), item.b.size(), kFewestRepetitions);
  }

  void note_few_repetitions() {
    std::set<std::string> few;
    bool all = true;
    for (const Item& item : items_) {
      if (!item.has_both()) continue;
      all = all && !item.has_repetitions();
      if (!item.has_repetitions()) few.insert(item.figure.path);
    }
    if (few.empty()) return;
    if (all) {
      comparison_.undecided = fmt::format(
          "{} repetitions of each are needed to tell a difference from chance (--repeat 5 or more)",
          kFewestRepetitions);
    } else {
      comparison_.notes.push_back(fmt::format("{}: measured in fewer than {} repetitions",
                                              fmt::join(few, ", "), kFewestRepetitions));
    }
  }

  const std::vector<Regression>& gates_;
  const std::vector<ComparedFigure> figures_;
  ResultComparison& comparison_;
  std::vector<Item> items_;
  std::set<std::string> measured_;  ///< figures that some strategy has
};

void add_doubts(const Result& result, std::string_view name, const ComparisonOptions& options,
                ResultComparison& comparison) {
  if (result.interrupted) {
    comparison.doubts.push_back(fmt::format("{} was interrupted", name));
  }
  const auto invalid =
      std::ranges::count_if(result.runs, [](const Run& run) { return !is_of_the_lock(run); });
  if (invalid == 0) return;
  const std::string note = fmt::format("{} of {} runs of {} {} invalid", invalid,
                                       result.runs.size(), name, invalid == 1 ? "is" : "are");
  if (options.with_invalid) {
    comparison.doubts.push_back(note + ": their figures may not be the lock's");
  } else {
    comparison.notes.push_back(note + ", and left out");
  }
}

/// Notes the figures that are lower bounds.
void note_lower_bounds(ResultComparison& comparison) {
  std::set<std::string_view> figures;
  for (const Difference& one : comparison.differences) {
    if (one.a_at_least || one.b_at_least) figures.insert(one.figure);
  }
  if (figures.empty()) return;
  comparison.notes.push_back(
      fmt::format("≥: waits were cut off, so the figure may be larger and its change different: {}",
                  fmt::join(figures, ", ")));
}

}  // namespace

std::string_view to_string(Gate::Outcome outcome) {
  constexpr std::array<std::string_view, 4> kNames{"kept", "cannot be excluded", "regression",
                                                   "not measured"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

std::string_view to_string(Finding finding) {
  constexpr std::array<std::string_view, 8> kNames{"no difference that can be shown",
                                                   "better",
                                                   "worse",
                                                   "higher",
                                                   "lower",
                                                   "too few repetitions to tell",
                                                   "not measured in A",
                                                   "not measured in B"};
  return kNames.at(static_cast<std::size_t>(finding));
}

double bound_of(const Regression& gate, const Difference& difference) {
  double bound = gate.bound;
  if (gate.is_share && !difference.relative) bound *= std::abs(difference.a);
  if (!gate.is_share && difference.relative) bound /= difference.a;
  return gate.more ? bound : -bound;
}

bool is_shown(Finding finding) {
  return finding == Finding::better || finding == Finding::worse || finding == Finding::higher ||
         finding == Finding::lower;
}

std::size_t repetitions_of_gates(std::size_t gates, double confidence) {
  return repetitions_for(gates, kShareOfFirst * (1 - confidence), Side::above)
      .value_or(kFewestRepetitions);
}

ResultComparison compare(const Result& a, const Result& b, const ComparisonOptions& options) {
  ResultComparison comparison{.confidence = options.confidence};
  const std::vector<StrategyRuns> of_a = strategies_of(a, options.with_invalid);
  const std::vector<StrategyRuns> of_b = strategies_of(b, options.with_invalid);
  const StrategyRuns nothing;
  Pairing pairing(options, comparison);
  for (const StrategyRuns& strategy : of_a) {
    const auto found = std::ranges::find(of_b, strategy.name, &StrategyRuns::name);
    const bool is_in_b = found != of_b.end();
    if (is_in_b) {
      ++comparison.in_both;
    } else {
      comparison.only_in_a.push_back(strategy.name);
    }
    pairing.add(strategy, is_in_b ? *found : nothing);
  }
  for (const StrategyRuns& strategy : of_b) {
    if (std::ranges::find(of_a, strategy.name, &StrategyRuns::name) != of_a.end()) continue;
    comparison.only_in_b.push_back(strategy.name);
  }
  pairing.judge_all();
  note_lower_bounds(comparison);
  add_doubts(a, "A", options, comparison);
  add_doubts(b, "B", options, comparison);
  comparison.notes.insert(comparison.notes.end(), comparison.doubts.begin(),
                          comparison.doubts.end());
  return comparison;
}

}  // namespace lockbench::results
