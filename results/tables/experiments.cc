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

/// "4.0 % of it (95 %: 1.2 % to 6.8 %)", or "none that can be shown" if its interval holds 0. `of`
/// follows the figure.
std::string cost_text(const Cost& cost, Unit unit, std::string_view of) {
  const std::string figure = fmt::format("{} {}", with_sign(cost.mean, unit), of);
  const auto& interval = cost.interval;
  if (!interval) return cost.mean > 0 ? figure + " (no interval)" : "none that can be shown";
  if (interval->holds(0)) {
    return fmt::format("none that can be shown (at most {} {})", human(interval->high, unit), of);
  }
  const std::string ends = fmt::format("95 %: {} to {}", with_sign(interval->low, unit),
                                       with_sign(interval->high, unit));
  return fmt::format("{}{} ({})", cost.mean < 0 ? "none, but " : "", figure, ends);
}

/// Of the most locks that were held.
std::vector<std::string> renewal_findings(const Result& result) {
  const auto held = [](const Run& run) { return run.load.held_locks.value_or(0); };
  const auto most = std::ranges::max_element(result.runs, {}, held);
  if (most == result.runs.end() || held(*most) == 0) return {};
  if (!most->costs || !most->costs->throughput) return {};
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
                      cost_text(*most->costs->throughput, Unit::share, "of their throughput"),
                      margin ? human_seconds(*margin) : "–", count(lost))};
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

Cell cost_cell(const Cost& cost, Unit unit) {
  const auto& interval = cost.interval;
  if (!interval) return cost.mean;
  if (interval->holds(0)) return {cost.mean, Tone::plain, "none shown"};
  return {cost.mean, Tone::plain,
          fmt::format("{} ± {}", with_sign(cost.mean, unit),
                      human((interval->high - interval->low) / 2, unit))};
}

std::vector<std::string> experiment_findings(const Result& result) {
  std::vector<std::string> lines = renewal_findings(result);
  std::vector<const Run*> largest;  // of each strategy and number of clients
  for (const Run& run : result.runs) {
    if (!run.load.nodes || !run.costs || !run.costs->node_seconds) continue;
    const auto same = std::ranges::find_if(largest, [&](const Run* one) {
      return one->strategy == run.strategy && one->load.clients == run.load.clients;
    });
    if (same == largest.end()) {
      largest.push_back(&run);
    } else if (run.load.nodes->count > (*same)->load.nodes->count) {
      *same = &run;
    }
  }
  for (const Run* run : largest) {
    lines.push_back(
        fmt::format("each further node costs {}, {} client{}: {}, {} commands a section",
                    run->strategy, run->load.clients, run->load.clients == 1 ? "" : "s",
                    cost_text(*run->costs->node_seconds, Unit::seconds, "of acquire p50"),
                    run->costs->node_commands ? human_number(*run->costs->node_commands) : "–"));
  }
  return lines;
}

}  // namespace lockbench::results
