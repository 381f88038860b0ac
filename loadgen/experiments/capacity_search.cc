#include "loadgen/experiments/capacity_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace lockbench::loadgen {
namespace {

using results::Decision;

constexpr double kHighestRate = 1e7;
constexpr double kWorthwhile = 1000;
/// Of the time: how long one rate may stay open, how long a kept one is measured before a higher
/// one is tried, and what is left for measuring both ends again.
constexpr double kPatience = 1.0 / 8, kTrust = 1.0 / 6, kLastPart = 1.0 / 5;

/// To three digits, as people write rates.
double rounded(double rate) {
  const double unit = std::pow(10, std::floor(std::log10(rate)) - 2);
  return std::round(rate / unit) * unit;
}

}  // namespace

CapacitySearch::CapacitySearch(CapacitySearchPlan plan, Measure measure, Estimate estimate)
    : plan_(plan), measure_(std::move(measure)), estimate_(std::move(estimate)) {
  plan_.ceiling = std::min(plan_.ceiling, kHighestRate);
}

CapacityInterval CapacitySearch::run() {
  // Ends, as each step takes time.
  while (const auto chosen = next()) {
    if (elapsed_ + estimate_(chosen->rate) > plan_.seconds) break;
    auto step = measure_(chosen->rate);
    if (!step) break;
    elapsed_ += step->seconds;
    Tally& tally = tallies_[chosen->rate];
    step->seconds += tally.seconds;
    static_cast<Step&>(tally) = *step;
    ++tally.steps;
    tally.confirming += chosen->confirms ? 1 : 0;
  }
  CapacityInterval found = interval();
  found.confirmed = is_narrow(found) && !confirmation(found, false);
  return found;
}

CapacityInterval CapacitySearch::interval() const {
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

double CapacitySearch::upper_end(const CapacityInterval& found) const {
  return std::isfinite(found.missed) ? found.missed : plan_.ceiling;
}

bool CapacitySearch::is_narrow(const CapacityInterval& found) const {
  return found.kept > 0 && upper_end(found) <= found.kept * (1 + plan_.precision);
}

std::optional<CapacitySearch::Next> CapacitySearch::next() const {
  if (tallies_.empty()) return Next{rounded(std::min(plan_.first_rate, plan_.ceiling / 2))};
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
  // What a free lock does not keep, no rate does.
  if (rate * kWorthwhile < plan_.first_rate) return std::nullopt;
  return Next{rate};
}

std::optional<CapacitySearch::Next> CapacitySearch::confirmation(const CapacityInterval& found,
                                                                 bool forever) const {
  std::optional<Next> again;
  for (const double end : {found.kept, found.missed}) {
    if (!(end > 0)) continue;  // there is none
    const Tally& tally = tallies_.at(end);
    if (!forever && 2 * tally.confirming >= tally.steps) continue;
    if (!again || tally.confirming < tallies_.at(again->rate).confirming) again = {end, true};
  }
  return again;
}

double CapacitySearch::undecided(const CapacityInterval& found) const {
  const double upper = upper_end(found);
  std::vector<std::pair<double, double>> open;  // rates, and the time that they took
  for (const auto& [rate, tally] : tallies_) {
    if (tally.decision != Decision::open || rate < found.kept || rate > upper) continue;
    const bool patient = tally.seconds < kPatience * plan_.seconds && !tally.hindered;
    if (!tally.enough || patient) return rate;
    open.emplace_back(rate, tally.seconds);
  }
  if (open.empty()) return between(found.kept, upper);
  const auto& [lowest, time_below] = open.front();
  const auto& [highest, time_above] = open.back();
  if (!(found.kept > 0)) return rounded(lowest / 2);
  const double gap_below = lowest / found.kept, gap_above = upper / highest;
  if (std::max(gap_below, gap_above) > 1 + plan_.precision) {
    return gap_below >= gap_above ? between(found.kept, lowest) : between(highest, upper);
  }
  return time_below <= time_above ? lowest : highest;
}

double CapacitySearch::between(double below, double above) const {
  // Samples at a low rate take long, those at a high one do not.
  if (!(below > 0)) return rounded(above / 2);
  if (above >= kHighestRate) return rounded(below * (tallies_.size() > 1 ? 4 : 2));
  const double planned = plan_.planned.value_or(0);
  const bool decides =
      planned > below * (1 + plan_.precision / 2) && planned * (1 + plan_.precision / 2) < above;
  return decides ? planned : rounded(std::sqrt(below * above));
}

}  // namespace lockbench::loadgen
