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

/// "none shown", "4.0 % ± 2.8 %"; "4.0 %" of one pair, which has no interval.
Cell overhead_cell(const RenewalPoint& point) {
  const auto& interval = point.overhead_interval;
  if (!interval) return point.overhead;
  if (interval->holds(0)) return {point.overhead, Tone::plain, "none shown"};
  return {point.overhead, Tone::plain,
          fmt::format("{} ± {}", with_sign(point.overhead, Unit::share),
                      human((interval->high - interval->low) / 2, Unit::share))};
}

const std::vector<Field<RenewalPoint>>& renewal_fields() {
  static const std::vector<Field<RenewalPoint>> fields{
      {{"strategy", "", "strategy", Unit::text, 0, Show::if_asked}, &RenewalPoint::strategy},
      {{"held", "", "held", Unit::count}, &RenewalPoint::held},
      {{"server_cpu_share", "server", "CPU", Unit::share, 4}, &RenewalPoint::server_cpu_share},
      {{"renewals_per_second", "", "renewals/s", Unit::number, 6},
       &RenewalPoint::renewals_per_second},
      {{"commands_per_second", "", "commands/s", Unit::number, 12},
       &RenewalPoint::commands_per_second},
      {{"sections_per_second", "", "sections/s", Unit::number, 5},
       &RenewalPoint::sections_per_second},
      {{"baseline_sections_per_second", "", "baseline", Unit::number, 13},
       &RenewalPoint::baseline_sections_per_second},
      {{"overhead", "", "overhead", Unit::share}, overhead_cell},
      {{"overhead_low", "", "overhead_low", Unit::share, 0, Show::if_asked},
       of(&RenewalPoint::overhead_interval, &Interval::low)},
      {{"overhead_high", "", "overhead_high", Unit::share, 0, Show::if_asked},
       of(&RenewalPoint::overhead_interval, &Interval::high)},
      {{"failures", "", "failures", Unit::count, 16}, &RenewalPoint::failures},
      {{"lost", "", "lost", Unit::count, 1}, &RenewalPoint::lost},
      {{"margin_min_seconds", "margin", "min", Unit::seconds, 2},
       of(&RenewalPoint::margin, &Distribution::min)},
      {{"margin_p50_seconds", "margin", "p50", Unit::seconds, 15},
       of(&RenewalPoint::margin, &Distribution::p50)},
      {{"slip_p50_seconds", "slip", "p50", Unit::seconds, 14},
       of(&RenewalPoint::slip, &Distribution::p50)},
      {{"slip_p99_seconds", "slip", "p99", Unit::seconds, 3},
       of(&RenewalPoint::slip, &Distribution::p99)},
  };
  return fields;
}

std::string finding(const RenewalPoint& point) {
  const auto count = [](std::uint64_t number) { return human_count(static_cast<double>(number)); };
  return fmt::format(
      "{} locks renewed: cost to the other clients {}, smallest margin {}, {} lost",
      count(point.held),
      cost_text(point.overhead, point.overhead_interval, Unit::share, "of their throughput"),
      point.margin.count > 0 ? human_seconds(point.margin.min) : "–", count(point.lost));
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

Table point_table(const std::vector<RenewalPoint>& points) {
  return table_of(renewal_fields(), points);
}

std::vector<std::string> findings(const std::vector<RenewalPoint>& points) {
  const auto largest = std::ranges::max_element(points, {}, &RenewalPoint::held);
  if (largest == points.end()) return {};
  return {finding(*largest)};
}

Table point_table(const Experiment& experiment) {
  return std::visit([](const auto& points) { return point_table(points); }, experiment.points);
}

std::vector<std::string> findings(const Experiment& experiment) {
  return std::visit([](const auto& points) { return findings(points); }, experiment.points);
}

std::vector<std::string> violations(const Experiment& experiment) {
  const auto* quorum = std::get_if<std::vector<QuorumPoint>>(&experiment.points);
  return quorum == nullptr ? std::vector<std::string>() : violations(*quorum);
}

}  // namespace lockbench::results
