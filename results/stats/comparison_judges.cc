#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "results/stats/compared_items.h"
#include "results/stats/significance.h"
#include "results/stats/tiers.h"

namespace lockbench::results {
namespace {

/// Least relative difference of repetitions (a bucket's width, another memory layout), so that
/// figures that happen to repeat do not look exact.
constexpr double kLeastNoise = 0.005;
/// Relative standard deviation from run to run, of figures of which no other is known.
constexpr double kRunToRun = 0.1;

/// Share of the allowed false alarms that figures with enough repetitions get at most, if figures
/// with fewer repetitions need some too.
constexpr double kMostOfAlarms = 0.9;
/// With which a gate finds its detectable change.
constexpr double kPower = 0.8;

double least_noise(const Item& item) {
  if (item.relative && item.figure->unit != Unit::count) return kLeastNoise;
  const double size = (mean_of(item.of_a) + mean_of(item.of_b)) / 2;
  // Counts scatter at least as in a Poisson distribution.
  if (item.relative) return std::exp(-size / 2);
  return item.figure->unit == Unit::count ? std::sqrt(std::max(size, 0.0))
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

/// Figures, each with the side on which a difference is looked for, that are judged together.
struct Family {
  std::vector<const Item*> items{};
  std::vector<Feature> features{};

  void add(const Item& item, Side side, const Slots& slots) {
    items.push_back(&item);
    features.push_back(feature_of(item, slots));
    features.back().side = side;
  }
};

/// The items with enough repetitions: regressions that gates ask for, and all other differences.
struct Repeated {
  Slots slots;
  Family gates{}, others{};
  std::vector<bool> in_b{};

  explicit Repeated(const std::vector<Item>& all) : slots(slots_of(all)) {
    for (const Item& item : all) {
      if (!item.has_repetitions()) continue;
      bool above = false;
      bool below = false;
      for (const Regression* gate : item.gates) (gate->more ? above : below) = true;
      if (above || below) gates.add(item, side_of(above, below), slots);
      if (!above || !below) others.add(item, side_of(!above, !below), slots);
    }
    in_b.resize(slots.a.size(), false);
    in_b.resize(slots.a.size() + slots.b.size(), true);
  }

 private:
  static Side side_of(bool above, bool below) {
    return above && below ? Side::both : above ? Side::above : Side::below;
  }
};

std::vector<double> numbers_of(const Values& values) {
  std::vector<double> all;
  for (const auto& [repetition, value] : values) all.push_back(value);
  return all;
}

void set_intervals(const std::vector<Item>& items, ResultComparison& comparison) {
  for (const Item& item : items) {
    if (!item.has_repetitions()) continue;
    const Interval change =
        bootstrap_interval(numbers_of(item.of_a), numbers_of(item.of_b), comparison.confidence);
    set_interval(item, change, comparison.differences[item.place]);
  }
}

/// Sets findings, for which the intervals must be there. `critical`: nothing if no difference can
/// be shown.
void judge_family(const Family& family, const std::vector<bool>& in_b, const PermutationTest& test,
                  std::optional<double> critical, std::vector<Difference>& differences) {
  for (std::size_t i = 0; i < family.items.size(); ++i) {
    const Item& item = *family.items[i];
    const Side side = family.features[i].side;
    const TwoSample sample = two_sample(family.features[i], in_b);
    const double center = mean_of(item.of_b) - mean_of(item.of_a);
    // The other side belongs to the other family.
    if (side == (center > 0 ? Side::below : Side::above)) continue;
    Difference& difference = differences[item.place];
    difference.p = test.p_value(sample.t(side));
    if (!critical) {
      difference.finding = Finding::cannot_tell;
    } else if (const bool shown = sample.t(side) > *critical;
               shown || std::abs(center) > family.features[i].noise) {
      set_finding(item, shown, difference);
    }
  }
}

/// The smallest change on the gate's side that is found with kPower: significant, and beyond the
/// bound.
double detectable(const Regression& gate, const Item& item, const TwoSample& sample,
                  double critical, const Difference& difference) {
  double bound = bound_of(gate, difference);
  if (item.relative) bound = std::log1p(std::max(bound, -1.0));
  const double change = std::max(critical * sample.error, std::abs(bound)) +
                        student_quantile(kPower, sample.degrees) * sample.error;
  const double turned = gate.more ? change : -change;
  return item.relative ? std::expm1(turned) : turned;
}

void judge_gates(const Repeated& repeated, double critical, ResultComparison& comparison) {
  for (std::size_t i = 0; i < repeated.gates.items.size(); ++i) {
    const Item& item = *repeated.gates.items[i];
    const Difference& difference = comparison.differences[item.place];
    const TwoSample sample = two_sample(repeated.gates.features[i], repeated.in_b);
    for (const Regression* gate : item.gates) {
      const double bound = bound_of(*gate, difference);
      const auto is_beyond = [&](double change) {
        return gate->more ? change > bound : change < bound;
      };
      auto outcome = Gate::Outcome::kept;
      if (is_shown(difference.finding) && is_beyond(difference.change)) {
        outcome = Gate::Outcome::regression;
      } else if (is_beyond(gate->more ? *difference.high : *difference.low) ||
                 (gate->more ? difference.b_at_least : difference.a_at_least)) {
        outcome = Gate::Outcome::not_excluded;
      }
      comparison.gates.push_back({*gate, difference.strategy, outcome, item.place,
                                  detectable(*gate, item, sample, critical, difference)});
    }
  }
}

/// The standard deviation that values of one side are taken to have.
double scatter_of(const Item& item, const Values& values) {
  const double of_waits = known_scatter(item.figure->path);
  const double relative = of_waits > 0 ? of_waits : kRunToRun;
  const double center = mean_of(values);
  // Counts scatter at least as in a Poisson distribution.
  const bool is_count = item.figure->unit == Unit::count;
  if (item.relative) return std::hypot(relative, is_count ? std::exp(-center / 2) : 0);
  return std::hypot(relative * center, is_count ? std::sqrt(std::max(center, 1.0)) : 0);
}

/// The items with few repetitions. `alarms`: what they together may have.
void judge_few(const std::vector<Item>& items, std::size_t count, double alarms,
               ResultComparison& comparison) {
  const double tail = alarms / (2 * static_cast<double>(count));
  for (const Item& item : items) {
    if (item.has_repetitions()) continue;
    const TwoSample sample = welch(numbers_of(item.of_a), numbers_of(item.of_b),
                                   scatter_of(item, item.of_a), scatter_of(item, item.of_b));
    const double center = sample.difference;
    const double half =
        sample.error * student_quantile((1 + comparison.confidence) / 2, sample.degrees);
    const double critical = tail > 0 ? student_quantile(1 - tail, sample.degrees)
                                     : std::numeric_limits<double>::infinity();
    Difference& difference = comparison.differences[item.place];
    set_interval(item, {.low = center - half, .high = center + half}, difference);
    set_finding(item, sample.t(Side::both) > critical, difference);
  }
}

/// `least`: the false alarms that it takes. `wanted`: the repetitions.
std::string why_nothing(const Slots& slots, double confidence, double least,
                        std::optional<std::size_t> wanted) {
  const std::size_t a = slots.a.size();
  const std::size_t b = slots.b.size();
  const double within_reach = std::floor(1000 * (1 - least) + 1e-6) / 1000;
  return fmt::format(
      "{} repetitions cannot show anything at {:g} %: {}--confidence {} would",
      a == b ? fmt::format("{}", a) : fmt::format("{} and {}", a, b), 100 * confidence,
      wanted > std::min(a, b) ? fmt::format("--repeat {} or ", *wanted) : "", within_reach);
}

/// The false alarms that the gates may have: half of all, unless one family needs more. If there
/// are not enough for both, all: the gates come first.
double alarms_of_gates(double least, double least_of_others, double alarms) {
  if (least + least_of_others > alarms) return alarms;
  return std::clamp(alarms / 2, least, alarms - least_of_others);
}

}  // namespace

std::size_t repetitions_of_gates(double confidence) {
  return std::max(kEnoughRepetitions,
                  repetitions_for(1 - confidence, true).value_or(kEnoughRepetitions));
}

void judge(const std::vector<Item>& items, ResultComparison& comparison) {
  const double confidence = comparison.confidence;
  double alarms = 1 - confidence;
  const Repeated repeated(items);
  const auto few = static_cast<std::size_t>(std::count_if(
      items.begin(), items.end(), [](const Item& item) { return !item.has_repetitions(); }));
  if (few == items.size()) return judge_few(items, few, alarms, comparison);

  set_intervals(items, comparison);
  const std::size_t of_a = repeated.slots.a.size();
  const PermutationTest others(repeated.others.features, of_a);
  // Figures with few repetitions share the false alarms of the others.
  const double part = few > 0 ? kMostOfAlarms : 1;
  const double least_of_others = others.least_alarms() / part;
  double least = least_of_others;
  double wanted = part * alarms;
  if (!repeated.gates.items.empty()) {
    const PermutationTest gates(repeated.gates.features, of_a);
    const double share = alarms_of_gates(gates.least_alarms(), least_of_others, alarms);
    const auto critical = gates.critical(1 - share);
    judge_family(repeated.gates, repeated.in_b, gates, critical, comparison.differences);
    if (critical) {
      judge_gates(repeated, *critical, comparison);
    } else if (comparison.gates_undecided.empty()) {
      comparison.gates_undecided = why_nothing(repeated.slots, confidence, gates.least_alarms(),
                                               repetitions_for(alarms, true));
    }
    alarms -= share;
    least += gates.least_alarms();
    wanted /= 2;
  }
  const double share =
      few > 0 ? std::clamp(others.least_alarms(), alarms / 2, part * alarms) : alarms;
  const auto critical = others.critical(1 - share);
  judge_family(repeated.others, repeated.in_b, others, critical, comparison.differences);
  if (few > 0) judge_few(items, few, critical ? alarms - share : alarms, comparison);
  if (critical || repeated.others.items.empty()) return;
  comparison.notes.push_back(
      why_nothing(repeated.slots, confidence, least, repetitions_for(wanted, false)));
}

}  // namespace lockbench::results
