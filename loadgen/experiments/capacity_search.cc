#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "loadgen/experiments/capacity_experiment.h"

namespace lockbench::loadgen {
namespace {

using results::Decision;

constexpr double kHighestRate = 1e7;
constexpr double kWorthwhile = 1000;
/// Shares of the time: how long one rate may stay open, how long a kept one is measured before a
/// higher one is tried, and the rest for measuring both ends again.
constexpr double kPatience = 1.0 / 8, kTrust = 1.0 / 6, kLastPart = 1.0 / 5;
/// A bracket this narrow leaves the rest to decisions.
constexpr double kNarrowBracket = 1.5;
/// A planned rate that would take a larger share of the time is left until others are decided.
constexpr double kPlannedPart = 1.0 / 2;
/// The rates around a guess, as powers of their distance, in the order in which they are tried.
/// Those next to each other are close enough for an answer.
constexpr std::array kAroundGuess{-1, 1, 3, -3};
constexpr double kCloseEnough = 0.8;  ///< of the precision
/// Steps that decide a rate, at most: each has a tenth of the samples.
constexpr double kStepsOfARate = 10;

/// To three digits, as people write rates.
double rounded(double rate) {
  const double unit = std::pow(10, std::floor(std::log10(rate)) - 2);
  return std::round(rate / unit) * unit;
}

/// See search_capacity().
class CapacitySearch {
 public:
  CapacitySearch(CapacitySearchPlan plan, const MakeStep& make, const EstimateStep& estimate)
      : plan_(std::move(plan)), make_(make), estimate_(estimate) {
    plan_.ceiling = std::min(plan_.ceiling, kHighestRate);
    if (!(plan_.guess.value_or(0) > 0)) return;
    for (const int power : kAroundGuess) {
      hints_.push_back(
          rounded(*plan_.guess * std::pow(1 + kCloseEnough * plan_.precision, 0.5 * power)));
    }
    hints_.push_back(plain_first());
    std::erase_if(hints_, [this](double rate) { return rate >= plan_.ceiling; });
  }

  CapacityInterval run() {
    bracket();
    // Ends, as each step takes time.
    while (const auto chosen = next()) {
      if (fits(chosen->rate, StepLength::full)) {
        if (!make_step(*chosen, StepLength::full)) break;
        continue;
      }
      const Next last = next_of_bracket().value_or(*chosen);
      if (!fits(last.rate, StepLength::brief) || !make_step(last, StepLength::brief)) break;
    }
    CapacityInterval found = interval();
    found.confirmed = is_narrow(found) && !confirmation(found, false);
    return found;
  }

 private:
  /// The latest step at a rate, with the time of all.
  struct Tally : SearchStep {
    int steps = 0;
    int confirming = 0;  ///< of these
  };
  struct Next {
    double rate = 0;
    bool confirms = false;
  };

  bool fits(double rate, StepLength length) const {
    return elapsed_ + estimate_(rate, length) <= plan_.seconds;
  }

  /// False: the search is over.
  bool make_step(const Next& chosen, StepLength length) {
    auto step = make_(chosen.rate, length);
    if (!step) return false;
    elapsed_ += step->seconds;
    Tally& tally = tallies_[chosen.rate];
    step->seconds += tally.seconds;
    static_cast<SearchStep&>(tally) = *step;
    ++tally.steps;
    tally.confirming += chosen.confirms ? 1 : 0;
    return true;
  }

  // The bracket: single steps.

  void bracket() {
    if (!(plan_.bracket_seconds > 0)) return;
    while (const auto chosen = next_of_bracket()) {
      const bool in_time =
          elapsed_ < plan_.bracket_seconds && fits(chosen->rate, StepLength::brief);
      if (!in_time || !make_step(*chosen, StepLength::brief)) break;
    }
    if (plan_.bracketed) plan_.bracketed(met(), not_met());
  }

  double met() const {
    const double limit = not_met();
    double highest = 0;
    for (const auto& [rate, tally] : tallies_) {
      if (rate < limit) highest = rate;
    }
    return highest;
  }

  double not_met() const {
    for (const auto& [rate, tally] : tallies_) {
      const bool holds =
          tally.decision == Decision::kept || (tally.decision == Decision::open && tally.met);
      if (!holds) return rate;
    }
    return std::numeric_limits<double>::infinity();
  }

  std::optional<Next> next_of_bracket() const {
    if (tallies_.empty()) {
      const double planned = plan_.planned.value_or(0);
      const bool brief = planned > 0 && planned < plan_.ceiling &&
                         estimate_(planned, StepLength::brief) <= plan_.bracket_seconds / 2;
      return Next{brief ? planned : first()};
    }
    const double below = met(), above = std::min(not_met(), plan_.ceiling);
    if (above <= kNarrowBracket * below) return std::nullopt;
    const double rate = between(below, above);
    // Nothing was met, and a lower rate would take too long to decide.
    const double longest = std::max(kPlannedPart * plan_.seconds, 4 * cost(plan_.first_rate));
    if (!(below > 0) && cost(rate) > longest) return std::nullopt;
    return Next{rate};
  }

  /// The time of all steps that decide a rate, at most.
  double cost(double rate) const { return kStepsOfARate * estimate_(rate, StepLength::full); }

  // The answer: decisions.

  CapacityInterval interval() const {
    CapacityInterval found;
    for (const auto& [rate, tally] : tallies_) {
      if (tally.decision == Decision::kept) found.kept = rate;
      if (tally.decision == Decision::missed) {
        found.missed = rate;
        break;
      }
    }
    return found;
  }

  double upper_end(const CapacityInterval& found) const {
    return std::isfinite(found.missed) ? found.missed : plan_.ceiling;
  }

  bool is_narrow(const CapacityInterval& found) const {
    return found.kept > 0 && upper_end(found) <= found.kept * (1 + plan_.precision);
  }

  /// The planned rate, if there is time to decide it.
  std::optional<double> planned_first() const {
    const double planned = plan_.planned.value_or(0);
    const bool in_time = planned > 0 && cost(planned) <= kPlannedPart * plan_.seconds;
    return in_time && planned < plan_.ceiling ? plan_.planned : std::nullopt;
  }

  double plain_first() const { return rounded(std::min(plan_.first_rate, plan_.ceiling / 2)); }
  double first() const {
    return planned_first().value_or(hints_.empty() ? plain_first() : hints_.front());
  }

  std::optional<Next> next() const {
    if (tallies_.empty()) return Next{first()};
    const CapacityInterval found = interval();
    if (is_narrow(found)) return confirmation(found, false);
    const bool both = found.kept > 0 && std::isfinite(found.missed);
    if (both && elapsed_ > (1 - kLastPart) * plan_.seconds) {
      return confirmation(found, true);
    }
    // Long waits come together: a few steps without them may be luck.
    const bool close = both && found.missed <= 2 * found.kept;
    if (close && tallies_.at(found.kept).seconds < kTrust * plan_.seconds) {
      return Next{found.kept, true};
    }
    const double rate = undecided(found);
    // An objective that a free lock misses is missed at every rate.
    if (rate * kWorthwhile < plan_.first_rate) return std::nullopt;
    return Next{rate};
  }

  /// The end of the interval that was remeasured less often; nothing if both were often enough, but
  /// never with `forever`.
  std::optional<Next> confirmation(const CapacityInterval& found, bool forever) const {
    std::optional<Next> again;
    for (const double end : {found.kept, found.missed}) {
      if (!(end > 0)) continue;  // no such end
      const Tally& tally = tallies_.at(end);
      if (!forever && 2 * tally.confirming >= tally.steps) continue;
      if (!again || tally.confirming < tallies_.at(again->rate).confirming) again = {end, true};
    }
    return again;
  }

  double undecided(const CapacityInterval& found) const {
    const double upper = upper_end(found);
    std::vector<std::pair<double, double>> left;  // rates that stay open, and their times
    std::vector<double> open;
    for (const auto& [rate, tally] : tallies_) {
      if (tally.decision != Decision::open || rate < found.kept || rate > upper) continue;
      const bool patient = tally.seconds < kPatience * plan_.seconds && !tally.hindered;
      if (!tally.enough || patient) {
        open.push_back(rate);
      } else {
        left.emplace_back(rate, tally.seconds);
      }
    }
    if (!open.empty()) {
      // Then upwards from a rate that is probably kept; a low one would take long.
      for (const double rate : {planned_first().value_or(0), met()}) {
        if (std::ranges::count(open, rate) > 0) return rate;
      }
      return open.front();
    }
    if (left.empty()) return between(found.kept, upper);
    const auto& [lowest, time_below] = left.front();
    const auto& [highest, time_above] = left.back();
    if (!(found.kept > 0)) return between(0, lowest);
    const double gap_below = lowest / found.kept, gap_above = upper / highest;
    if (std::max(gap_below, gap_above) > 1 + plan_.precision) {
      return gap_below >= gap_above ? between(found.kept, lowest) : between(highest, upper);
    }
    return time_below <= time_above ? lowest : highest;
  }

  double between(double below, double above) const {
    const double apart = 1 + plan_.precision / 2;
    for (const double rate : hints_) {
      if (rate > below * apart && rate * apart < above && !tallies_.contains(rate)) return rate;
    }
    // Samples take long at a low rate, not at a high one.
    if (!(below > 0)) return rounded(above / 2);
    if (above >= kHighestRate) return rounded(below * (tallies_.size() > 1 ? 4 : 2));
    const double planned = plan_.planned.value_or(0);
    const bool decides = planned > below * apart && planned * apart < above;
    return decides ? planned : rounded(std::sqrt(below * above));
  }

  CapacitySearchPlan plan_;
  const MakeStep& make_;
  const EstimateStep& estimate_;
  std::vector<double> hints_;  ///< rates to try if they lie in between
  std::map<double, Tally> tallies_;
  double elapsed_ = 0;
};

}  // namespace

CapacityInterval search_capacity(CapacitySearchPlan plan, const MakeStep& make,
                                 const EstimateStep& estimate) {
  return CapacitySearch(std::move(plan), make, estimate).run();
}

}  // namespace lockbench::loadgen
