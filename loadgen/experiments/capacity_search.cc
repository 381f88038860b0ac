#include "loadgen/experiments/capacity_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockbench::loadgen {
namespace {

constexpr std::string_view kClimb = "climb", kBisect = "bisect", kConfirmAt = "confirm-at",
                           kConfirmAbove = "confirm-above";

}  // namespace

CapacitySearch::CapacitySearch(CapacitySearchPlan plan, Measure measure)
    : plan_(plan), measure_(std::move(measure)), random_(plan.seed) {}

CapacityInterval CapacitySearch::run() {
  while (steps_ < plan_.most_steps) {
    const CapacityInterval found = interval();
    if (const auto rate = next_rate(found)) {
      const bool closed = found.held > 0 && std::isfinite(found.failed);
      if (!try_rate(closed ? kBisect : kClimb, *rate, false)) break;
      continue;
    }
    const std::vector<bool> order = missing(found);
    if (order.empty() || !confirm(found, order)) break;
  }
  CapacityInterval found = interval();
  const bool closed = found.held > 0 && std::isfinite(found.failed);
  found.confirmed = closed && !next_rate(found) && missing(found).empty();
  return found;
}

CapacityInterval CapacitySearch::interval() const {
  CapacityInterval found;
  for (const auto& [rate, tally] : tallies_) {
    if (!tally.holds()) {
      found.failed = rate;
      break;
    }
    found.held = rate;
  }
  return found;
}

std::optional<double> CapacitySearch::next_rate(const CapacityInterval& interval) const {
  const auto within = [this](double rate) -> std::optional<double> {
    const bool allowed = rate >= plan_.lowest_rate && rate <= plan_.highest_rate;
    return allowed ? std::optional(rate) : std::nullopt;
  };
  if (tallies_.empty()) {
    return std::clamp(plan_.first_rate, plan_.lowest_rate, plan_.highest_rate);
  }
  if (!std::isfinite(interval.failed)) return within(2 * interval.held);
  if (interval.held <= 0) return within(interval.failed / 2);
  if (interval.failed <= interval.held * (1 + plan_.precision)) return std::nullopt;
  return std::sqrt(interval.held * interval.failed);
}

std::vector<bool> CapacitySearch::missing(const CapacityInterval& interval) {
  std::vector<bool> order;
  for (const bool at : {true, false}) {
    const double end = at ? interval.held : interval.failed;
    if (!(end > 0)) continue;  // that end is open
    const auto tally = tallies_.find(end);
    const int lacking = std::max(0, plan_.confirmations - tally->second.confirming);
    order.insert(order.end(), static_cast<std::size_t>(lacking), at);
  }
  std::shuffle(order.begin(), order.end(), random_);
  return order;
}

bool CapacitySearch::confirm(const CapacityInterval& interval, const std::vector<bool>& order) {
  for (const bool at : order) {
    if (steps_ >= plan_.most_steps) return false;
    const bool done = at ? try_rate(kConfirmAt, interval.held, true)
                         : try_rate(kConfirmAbove, interval.failed, true);
    if (!done) return false;
  }
  return true;
}

bool CapacitySearch::try_rate(std::string_view purpose, double rate, bool confirms) {
  ++steps_;
  const auto met = measure_(purpose, rate);
  if (!met) return false;
  Tally& tally = tallies_[rate];
  ++tally.runs;
  tally.met += *met ? 1 : 0;
  if (confirms) {
    ++tally.confirming;
    tally.confirming_met += *met ? 1 : 0;
  }
  return true;
}

}  // namespace lockbench::loadgen
