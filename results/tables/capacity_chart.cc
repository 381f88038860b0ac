#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "results/tables/experiments.h"
#include "results/tables/text.h"
#include "results/tables/units.h"

namespace lockbench::results {
namespace {

constexpr std::size_t kColumns = 48;

/// Time from left to right, whole decades.
struct Axis {
  int first = 0, last = 1;  ///< powers of ten of a second

  std::size_t column(double seconds) const {
    const double share = (std::log10(seconds) - first) / (last - first);
    const double at = std::round(std::clamp(share, 0.0, 1.0) * (kColumns - 1));
    return static_cast<std::size_t>(at);
  }
};

std::vector<const CapacityStep*> granted_by_rate(const Capacity& capacity) {
  std::vector<const CapacityStep*> steps;
  for (const CapacityStep& step : capacity.steps) {
    if (step.acquire.count > 0 && step.acquire.p50 > 0) steps.push_back(&step);
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const auto* a, const auto* b) { return a->rate < b->rate; });
  return steps;
}

Axis axis_of(const std::vector<const CapacityStep*>& steps) {
  double least = std::numeric_limits<double>::max(), most = 0;
  for (const CapacityStep* step : steps) {
    least = std::min(least, step->acquire.p50);
    most = std::max(most, step->acquire.p99);
  }
  Axis axis;
  axis.first = static_cast<int>(std::floor(std::log10(least)));
  axis.last = std::max(axis.first + 1, static_cast<int>(std::ceil(std::log10(most))));
  return axis;
}

std::string right(const std::string& text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(width > used ? width - used : 0, ' ') + text;
}

/// The decades under their columns, as far as they do not run into each other.
std::string scale(const Axis& axis) {
  std::string line;
  std::size_t used = 0;
  for (int decade = axis.first; decade <= axis.last; ++decade) {
    const double seconds = std::pow(10, decade);
    const std::string label = human_seconds(seconds);
    const std::size_t at = axis.column(seconds);
    if (decade > axis.first && at < used + 2) continue;
    line += std::string(at - used, ' ') + label;
    used = at + display_width(label);
  }
  return line;
}

}  // namespace

std::string chart(const Capacity& capacity) {
  const auto steps = granted_by_rate(capacity);
  if (steps.empty()) return "";
  const Axis axis = axis_of(steps);
  constexpr std::size_t kRate = 8;
  std::string out =
      fmt::format("{}  acquire: o p50, * p99 (logarithmic)\n", right("rate /s", kRate));
  for (const CapacityStep* step : steps) {
    std::string marks(kColumns, ' ');
    marks[axis.column(step->acquire.p50)] = 'o';
    marks[axis.column(step->acquire.p99)] = '*';
    out += fmt::format("{} |{}| {} {} {}\n", right(human_number(step->rate), kRate), marks,
                       right(human_seconds(step->acquire.p50), 8),
                       right(human_seconds(step->acquire.p99), 8),
                       !step->valid ? "invalid"
                       : step->met  ? "kept"
                                    : "missed");
  }
  return out + std::string(kRate + 2, ' ') + scale(axis) + "\n";
}

}  // namespace lockbench::results
