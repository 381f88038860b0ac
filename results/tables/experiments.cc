#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "results/file/loads.h"
#include "results/tables/runs.h"
#include "results/tables/text.h"

// Tables and sentences of capacity, renewal and quorum.

namespace lockbench::results {
namespace {

std::string count(std::uint64_t number) { return human_count(static_cast<double>(number)); }

std::string with_sign(double value, Unit unit) {
  return (value < 0 ? "−" : "") + human(std::abs(value), unit);
}

/// "4.0 % of it (95 %: 1.2 % to 6.8 %)", or "none that can be shown" if the interval contains 0.
/// `of` follows the figure.
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

/// The finding for the largest number of held locks.
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
  return {fmt::format("{} locks renewed: cost to the other clients {}, smallest margin {}, {} lost",
                      count(held(*most)),
                      cost_text(*most->costs->throughput, Unit::share, "of their throughput"),
                      margin ? human_seconds(*margin) : "–", count(lost))};
}

using Lines = std::vector<std::string>;

/// "86/s (1,620 samples, missed in 0 of 6 steps)", or only the rate if it was not measured.
std::string with_evidence(const Capacity& capacity, double rate) {
  const CapacityRate* at = capacity.at(rate);
  if (at == nullptr) return human_number(rate) + "/s";
  return fmt::format("{}/s ({} samples, missed in {} of {} steps)", human_number(rate),
                     count(at->samples), at->missed_steps, at->steps);
}

void add_planned(const Capacity& capacity, Lines& lines) {
  if (!capacity.planned_rate) return;
  const std::string planned = fmt::format("planned {}/s:", human_number(*capacity.planned_rate));
  const bool between = capacity.lowest > 0 && *capacity.planned_rate > capacity.lowest;
  if (capacity.planned_too_high()) {
    lines.push_back(planned + " too high" +
                    (between ? fmt::format(", {:.2g} times what is kept",
                                           *capacity.planned_rate / capacity.lowest)
                             : ""));
  } else if (!(capacity.lowest > 0) || between) {
    const CapacityRate* at = capacity.at(*capacity.planned_rate);
    const CapacityRate* met = capacity.met_only();
    if (at != nullptr && at->missed_steps == 0) {
      lines.push_back(
          fmt::format("{} not decided, but met in {} of {} steps", planned, at->steps, at->steps));
    } else if (at == nullptr && met != nullptr && met->rate >= *capacity.planned_rate) {
      lines.push_back(planned + " not decided, but a higher rate was met");
    } else {
      lines.push_back(planned + " not decided");
    }
  } else {
    lines.push_back(fmt::format("{} kept, headroom {:.0f} %", planned, 100 * *capacity.headroom));
  }
  if (!capacity.keys_needed) return;
  lines.push_back(fmt::format(
      "keys: {}/s need at least {}, if the store carries them: measure --keys {} --planned-rate {}",
      human_number(*capacity.planned_rate), *capacity.keys_needed, *capacity.keys_needed,
      *capacity.planned_rate));
}

void add_interval(const Capacity& capacity, Lines& lines) {
  const bool missed = std::isfinite(capacity.highest), any = capacity.lowest > 0;
  std::string line = capacity.objective;
  const CapacityRate* met = capacity.met_only();
  line += any ? " is kept up to " + with_evidence(capacity, capacity.lowest)
              : " is not shown to be kept at any rate";
  if (met != nullptr) {
    line +=
        fmt::format(", {} up to {}", any ? "met" : "but met", with_evidence(capacity, met->rate));
  }
  if (missed) line += ", and missed from " + with_evidence(capacity, capacity.highest);
  if (!missed) {
    double tried = 0;
    for (const CapacityRate& at : capacity.rates) tried = std::max(tried, at.rate);
    line += "; no rate missed it";
    if (tried > 0) line += fmt::format(", up to {}/s", human_number(tried));
    if (capacity.ceiling) {
      line += fmt::format(" (the hold allows no more than {}/s)", human_number(*capacity.ceiling));
    }
  }
  lines.push_back(std::move(line));
  Lines open;
  for (const CapacityRate& at : capacity.rates) {
    const bool between = at.rate > capacity.lowest && !(at.rate >= capacity.highest);
    if (at.decision != "open" || !between) continue;
    open.push_back(fmt::format("{}: {}", with_evidence(capacity, at.rate), at.reason));
  }
  if (!open.empty()) {
    lines.push_back(fmt::format("not decided in time: {}", fmt::join(open, "; ")));
  }
}

/// "0 (up to 1.9)", "12 (8.1 to 17)".
Cell estimate_cell(const Estimate& estimate) {
  const std::string value = human_number(estimate.value);
  if (!std::isfinite(estimate.value)) return {};
  const Tone tone = estimate.low > 0 ? Tone::bad : Tone::plain;
  return {estimate.value, tone,
          estimate.low > 0 ? fmt::format("{} ({} to {})", value, human_number(estimate.low),
                                         human_number(estimate.high))
                           : fmt::format("{} (up to {})", value, human_number(estimate.high))};
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
  const auto line = [](const Run& run) { return std::pair(run.strategy, run.load.clients); };
  for (auto& [of, runs] : grouped(result.runs, line)) {
    std::erase_if(runs, [](const Run* run) {
      return !run->load.nodes || !run->costs || !run->costs->node_seconds;
    });
    if (runs.empty()) continue;
    const Run* const run =
        *std::ranges::max_element(runs, {}, [](const Run* one) { return one->load.nodes->count; });
    lines.push_back(
        fmt::format("each further node costs {}, {} client{}: {}, {} commands a section",
                    run->strategy, run->load.clients, run->load.clients == 1 ? "" : "s",
                    cost_text(*run->costs->node_seconds, Unit::seconds, "of acquire p50"),
                    run->costs->node_commands ? human_number(*run->costs->node_commands) : "–"));
  }
  return lines;
}

Table capacity_table(const std::vector<Capacity>& capacities) {
  static const std::vector<Field<Capacity>> fields{
      {{"strategy", "", "strategy"}, &Capacity::strategy},
      {{.key = "objective", .name = "objective", .show = Show::if_asked}, &Capacity::objective},
      {{"clients", "", "clients", Unit::count, 5}, &Capacity::clients},
      {{"keys", "", "keys", Unit::count, 6}, &Capacity::keys},
      {{"highest_kept_per_second", "kept", "up to /s", Unit::number},
       [](const Capacity& capacity) -> Cell {
         return {capacity.lowest, Tone::plain,
                 capacity.lowest > 0 ? human_number(capacity.lowest) : "none"};
       }},
      {{"highest_met_per_second", "met", "up to /s", Unit::number, 2, Show::if_any},
       [](const Capacity& capacity) -> Cell {
         const CapacityRate* met = capacity.met_only();
         return met == nullptr ? Cell() : Cell(met->rate, Tone::doubtful);
       }},
      {{"kept_rho", "at that", "lock taken", Unit::share, 5},
       [](const Capacity& capacity) -> Cell {
         const CapacityRate* at = capacity.at(capacity.lowest);
         return at != nullptr ? Cell(at->rho) : Cell();
       }},
      {{"lowest_missed_per_second", "missed", "from /s", Unit::number, 1}, &Capacity::highest},
      {{"confirmed", "", "confirmed", Unit::text, 9}, &Capacity::confirmed},
      {{"violated", "", "violated", Unit::text, 5}, &Capacity::violated},
      {{"limit", "", "limit", Unit::text, 2}, &Capacity::limit},
      {{.key = "limit_reason", .name = "reason", .show = Show::if_asked}, &Capacity::limit_reason},
      {{"ceiling_per_second", "ceiling", "/s", Unit::number, 0, Show::if_asked},
       &Capacity::ceiling},
      {{"planned_per_second", "planned", "/s", Unit::number, 10, Show::if_any},
       &Capacity::planned_rate},
      {{"planned_per_kept", "planned", "/ kept", Unit::number, 5, Show::if_any},
       &Capacity::utilisation},
      {{"headroom", "", "headroom", Unit::share, 11, Show::if_any}, &Capacity::headroom},
      {{"keys_needed", "keys", "needed", Unit::count, 4, Show::if_any}, &Capacity::keys_needed},
  };
  return table_of(fields, capacities);
}

namespace {

/// "ttl 3s"; empty if it is no point of a sweep.
std::string swept_text(const Simulation& one) {
  return one.swept ? one.swept->option + " " + one.swept->value : "";
}

/// Its strategy, and its point of a sweep.
std::string name_of(const Simulation& one) {
  return one.swept ? fmt::format("{} with {}", one.strategy, swept_text(one)) : one.strategy;
}

std::string unavailable_text(const Simulation& one) {
  return fmt::format("{:.3g} %", 100 * (1 - one.availability));
}

}  // namespace

Table simulation_table(const std::vector<Simulation>& simulations) {
  const auto acquire = [](double Distribution::*figure) {
    return [figure](const Simulation& one) { return figure_cell(one.acquire, figure); };
  };
  std::vector<Field<Simulation>> fields{
      {{"strategy", "", "strategy"}, &Simulation::strategy},
      {{"swept", "", "with", Unit::text, 0, Show::if_any},
       [](const Simulation& one) { return Cell(swept_text(one)); }},
      {{"seeds", "", "seeds", Unit::count, 6}, &Simulation::seeds},
      {{"simulated_seconds", "", "time", Unit::seconds, 5}, &Simulation::simulated_seconds},
      {{"sections", "", "sections", Unit::count, 4}, &Simulation::sections},
      {{"violations", "two", "holders", Unit::count}, &Simulation::violations},
      {{"violations_per_million", "per", "million (95 %)", Unit::number},
       [](const Simulation& one) { return estimate_cell(one.per_million); }},
      {{"violations_per_year", "per", "year (95 %)", Unit::number, 2},
       [](const Simulation& one) { return estimate_cell(one.per_year); }},
      {{"lost_updates", "updates", "lost", Unit::count, 1}, &Simulation::lost_updates},
      {{"lost_updates_fenced", "lost if", "fenced", Unit::count, 3},
       &Simulation::lost_updates_fenced},
      {{"availability", "", "available", Unit::share, 1},
       [](const Simulation& one) -> Cell {
         return {one.availability, Tone::plain, fmt::format("{:.5g} %", 100 * one.availability)};
       }},
      {{"unavailability", "", "unavailable", Unit::share, 0, Show::if_asked},
       [](const Simulation& one) -> Cell {
         return {1 - one.availability, Tone::plain, unavailable_text(one)};
       }},
      {{"longest_outage_seconds", "longest", "outage", Unit::seconds, 3},
       &Simulation::longest_outage_seconds},
      {{"acquire_p50_seconds", "acquire", "p50", Unit::seconds, 2}, acquire(&Distribution::p50)},
      {{"acquire_p99_seconds", "acquire", "p99", Unit::seconds, 2}, acquire(&Distribution::p99)},
      {{"acquire_max_seconds", "acquire", "max", Unit::seconds, 7}, acquire(&Distribution::max)},
  };
  // Of a sweep: the curves over its values.
  static constexpr std::array<std::string_view, 9> kCurves{
      "strategy",           "swept",
      "violations",         "violations_per_million",
      "unavailability",     "longest_outage_seconds",
      "sections",           "acquire_p50_seconds",
      "acquire_p99_seconds"};
  const bool sweep =
      std::ranges::any_of(simulations, [](const Simulation& one) { return one.swept.has_value(); });
  for (Field<Simulation>& field : fields) {
    if (!sweep) break;
    const bool shown = std::ranges::count(kCurves, field.column.key) > 0;
    field.column.show = shown ? Show::always : Show::if_asked;
  }
  return table_of(fields, simulations);
}

std::vector<std::string> sweep_findings(const std::vector<Simulation>& simulations) {
  Lines lines;
  std::vector<Simulation> swept;
  std::ranges::copy_if(simulations, std::back_inserter(swept), [](const Simulation& one) {
    return one.swept && std::isfinite(one.per_million.value);
  });
  for (const auto& [strategy, points] : grouped(swept, &Simulation::strategy)) {
    if (points.size() < 2) continue;
    const Estimate safest = (*std::ranges::min_element(points, {}, [](const Simulation* one) {
                              return one->per_million.value;
                            }))->per_million;
    const double most = (*std::ranges::max_element(points, {}, [](const Simulation* one) {
                          return one->availability;
                        }))->availability;
    Lines safe, ready;
    for (const Simulation* one : points) {
      // Not shown to have more.
      if (one->per_million.low <= safest.high) safe.push_back(swept_text(*one));
      if (one->availability >= most) ready.push_back(swept_text(*one));
    }
    std::string line =
        safe.size() == points.size()
            ? "no value is shown to have fewer grants to two holders than another"
            : fmt::format("fewest grants to two holders with {}: {} per million sections",
                          fmt::join(safe, ", "), estimate_cell(safest).text);
    if (ready.size() < points.size()) {
      line += fmt::format("; least unavailable with {}: {:.3g} %", fmt::join(ready, ", "),
                          100 * (1 - most));
    }
    lines.push_back(fmt::format("{}: {}", strategy, line));
  }
  return lines;
}

Lines findings(const Simulation& simulation) {
  Lines lines;
  if (!simulation.causes.empty()) {
    Lines causes;
    for (const auto& [cause, times] : simulation.causes) {
      causes.push_back(fmt::format("{} {}", cause, count(times)));
    }
    lines.push_back(
        fmt::format("{}: two holders after: {}", name_of(simulation), fmt::join(causes, ", ")));
  }
  for (const SimulatedRegion& one : simulation.regions) {
    lines.push_back(fmt::format("{} from {}: p50 {}, p99 {}", name_of(simulation), one.region,
                                human_seconds(one.acquire.p50), human_seconds(one.acquire.p99)));
  }
  for (const std::string& error : simulation.errors) {
    lines.push_back(fmt::format("failure: {}: {}", name_of(simulation), error));
  }
  return lines;
}

std::vector<std::string> findings(const Capacity& capacity) {
  Lines lines;
  if (capacity.violated.value_or(false)) {
    lines.push_back("exclusion was violated: the capacity of this lock is meaningless");
  }
  add_interval(capacity, lines);
  lines.push_back(fmt::format("limit: {}: {}", capacity.limit, capacity.limit_reason));
  add_planned(capacity, lines);
  return lines;
}

}  // namespace lockbench::results
