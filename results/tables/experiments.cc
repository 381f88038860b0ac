#include "results/tables/experiments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "results/tables/units.h"

namespace lockbench::results {
namespace {

std::string with_sign(double value, Unit unit) {
  return (value < 0 ? "−" : "") + human(std::abs(value), unit);
}

}  // namespace

Cell figure_cell(const Distribution& of, double Distribution::*figure) {
  static constexpr std::array<std::pair<double Distribution::*, std::string_view>, 3> kBounds{
      {{&Distribution::p50, "p50"}, {&Distribution::p99, "p99"}, {&Distribution::max, "max"}}};
  if (!of.any()) return {};
  Cell cell = of.*figure;
  for (const auto& [one, name] : kBounds) {
    if (one == figure) cell.at_least = of.is_at_least(name);
  }
  return cell;
}

std::string cost_text(double cost, const std::optional<Interval>& interval, Unit unit,
                      std::string_view of) {
  const std::string figure = fmt::format("{} {}", with_sign(cost, unit), of);
  if (!interval) return cost > 0 ? figure + " (no interval)" : "none that can be shown";
  if (interval->holds(0)) {
    return fmt::format("none that can be shown (at most {} {})", human(interval->high, unit), of);
  }
  const std::string ends = fmt::format("95 %: {} to {}", with_sign(interval->low, unit),
                                       with_sign(interval->high, unit));
  return fmt::format("{}{} ({})", cost < 0 ? "none, but " : "", figure, ends);
}

Cell throughput_cost(const Run& run) {
  if (!run.costs) return {};
  const double cost = run.costs->throughput;
  const auto& interval = run.costs->throughput_interval;
  if (!interval) return cost;
  if (interval->holds(0)) return {cost, Tone::plain, "none shown"};
  return {cost, Tone::plain,
          fmt::format("{} ± {}", with_sign(cost, Unit::share),
                      human((interval->high - interval->low) / 2, Unit::share))};
}

std::vector<std::string> renewal_findings(const Result& result) {
  const auto held = [](const Run& run) { return run.load.held_locks.value_or(0); };
  const auto most = std::ranges::max_element(result.runs, {}, held);
  if (most == result.runs.end() || held(*most) == 0 || !most->costs) return {};
  std::optional<double> margin;
  std::uint64_t lost = 0;
  for (const Run& run : result.runs) {
    if (held(run) != held(*most) || !run.renewal) continue;
    lost += run.renewal->lost;
    const double least = run.renewal->margin.min;
    if (run.renewal->margin.count > 0) margin = std::min(margin.value_or(least), least);
  }
  const auto count = [](std::uint64_t number) { return human_count(static_cast<double>(number)); };
  return {fmt::format("{} locks renewed: cost to the other clients {}, smallest margin {}, {} lost",
                      count(held(*most)),
                      cost_text(most->costs->throughput, most->costs->throughput_interval,
                                Unit::share, "of their throughput"),
                      margin ? human_seconds(*margin) : "–", count(lost))};
}

}  // namespace lockbench::results
