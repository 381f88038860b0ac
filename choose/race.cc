#include "choose/race.h"

#include <algorithm>
#include <limits>

#include "results/stats/statistics.h"
#include "results/stats/tiers.h"

namespace lockbench::choose {
namespace {

/// After one round a strategy that is so many times worse than the best is hopeless.
constexpr double kHopeless = 4;
/// With fewer, an interval says nothing.
constexpr std::size_t kRoundsOfAnInterval = 3;
/// Enough for a difference of a quarter, if rounds scatter by a tenth.
constexpr std::size_t kEnoughRounds = 4;

double best_median(const std::vector<std::vector<double>>& values) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& one : values) {
    if (const auto median = results::median(one)) best = std::min(best, *median);
  }
  return best;
}

}  // namespace

std::vector<bool> still_in(const std::vector<std::vector<double>>& values) {
  std::vector<std::vector<double>> sure = values;
  for (auto& one : sure) {
    if (one.size() < kRoundsOfAnInterval) one.clear();
  }
  const std::vector<int> tiers = results::tiers(sure);
  const double best = best_median(values);
  std::vector<bool> in;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto median = results::median(values[i]);
    in.push_back(!median || (*median <= kHopeless * best && tiers[i] <= 1));
  }
  return in;
}

bool is_settled(const std::vector<std::vector<double>>& values) {
  const std::vector<bool> in = still_in(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (in[i] && values[i].size() < kEnoughRounds) return false;
  }
  return true;
}

}  // namespace lockbench::choose
