#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "results/tables/experiments.h"
#include "results/tables/units.h"

namespace lockbench::results {
namespace {

using Lines = std::vector<std::string>;

std::string count(std::uint64_t number) { return human_count(static_cast<double>(number)); }

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string kept(const Capacity& capacity) {
  return capacity.lowest > 0 ? human_number(capacity.lowest) : "none";
}

/// "5 of 12": steps at that rate that missed the objective, of all.
std::string misses(const CapacityRate& at) {
  return fmt::format("{} of {}", at.missed_steps, at.steps);
}

/// "86/s (1,620 samples, missed in 0 of 6 steps)", as far as it is known.
std::string with_evidence(const Capacity& capacity, double rate) {
  const CapacityRate* at = capacity.at(rate);
  if (at == nullptr) return human_number(rate) + "/s";
  return fmt::format("{}/s ({} samples, missed in {} steps)", human_number(rate),
                     count(at->samples), misses(*at));
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
  } else if (between) {
    lines.push_back(planned + " not decided; it is above what is kept and below what is missed");
  } else if (!capacity.headroom) {
    lines.push_back(planned + " no rate kept the objective");
  } else {
    lines.push_back(fmt::format("{} kept, headroom {}", planned, percent(*capacity.headroom)));
  }
}

void add_interval(const Capacity& capacity, Lines& lines) {
  const bool missed = std::isfinite(capacity.highest), any = capacity.lowest > 0;
  std::string line = capacity.objective;
  line += any ? " is kept up to " + with_evidence(capacity, capacity.lowest)
              : " was kept at none of the rates that were tried";
  if (missed) line += ", and missed from " + with_evidence(capacity, capacity.highest);
  if (!missed) {
    double tried = 0;
    for (const CapacityRate& at : capacity.rates) tried = std::max(tried, at.rate);
    line += "; no rate was found that misses it";
    if (tried > 0) line += fmt::format(", of those up to {}/s", human_number(tried));
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
    lines.push_back(fmt::format("not decided in the time: {}", fmt::join(open, "; ")));
  }
}

/// A step of a capacity.
struct StepRow {
  const Capacity* capacity;
  const CapacityStep* step;
};

template <class T>
auto of_step(T CapacityStep::*member) {
  return [member](const StepRow& row) -> Cell { return row.step->*member; };
}

auto of_acquire(double Distribution::*figure) {
  return [figure](const StepRow& row) { return figure_cell(row.step->acquire, figure); };
}

/// Of a step alone.
auto of_judgement(bool CapacityStep::*member, Tone if_true, Tone if_false) {
  return [=](const StepRow& row) -> Cell {
    return {row.step->*member, row.step->*member ? if_true : if_false};
  };
}

const std::vector<Field<StepRow>>& step_fields() {
  static const std::vector<Field<StepRow>> fields{
      {{"strategy", "", "strategy"}, [](const StepRow& row) { return row.capacity->strategy; }},
      {{"objective", "", "objective"}, [](const StepRow& row) { return row.capacity->objective; }},
      {{"purpose", "", "step"}, of_step(&CapacityStep::purpose)},
      {{"offered_per_second", "", "offered /s", Unit::number}, of_step(&CapacityStep::rate)},
      {{"sections_per_second", "", "served /s", Unit::number}, of_step(&CapacityStep::achieved)},
      {{"acquire_p50_seconds", "acquire", "p50", Unit::seconds}, of_acquire(&Distribution::p50)},
      {{"acquire_p99_seconds", "acquire", "p99", Unit::seconds}, of_acquire(&Distribution::p99)},
      {{"met", "", "met"}, of_judgement(&CapacityStep::met, Tone::good, Tone::bad)},
      {{"valid", "", "valid"}, of_judgement(&CapacityStep::valid, Tone::plain, Tone::doubtful)},
      {{"server_cpu_share", "server", "CPU", Unit::share},
       of_step(&CapacityStep::server_cpu_share)},
      {{"generator_cpu_share", "generator", "CPU", Unit::share},
       of_step(&CapacityStep::generator_cpu_share)},
      {{"reason", "", "reason"}, of_step(&CapacityStep::reason)},
      {{"violated", "", "violated"}, [](const StepRow& row) { return row.capacity->violated; }},
  };
  return fields;
}

/// Fills a cell with a figure of the highest rate that is kept.
template <class T>
auto of_kept(T CapacityRate::*member) {
  return [member](const Capacity& capacity) -> Cell {
    const CapacityRate* at = capacity.at(capacity.lowest);
    return at != nullptr ? Cell(at->*member) : Cell();
  };
}

Cell misses_at(const Capacity& capacity, double rate) {
  const CapacityRate* at = capacity.at(rate);
  return at != nullptr ? Cell(misses(*at)) : Cell();
}

}  // namespace

Table capacity_table(const std::vector<Capacity>& capacities) {
  static const std::vector<Field<Capacity>> fields{
      {{"strategy", "", "strategy"}, &Capacity::strategy},
      {{"clients", "", "clients", Unit::count, 5}, &Capacity::clients},
      {{"keys", "", "keys", Unit::count, 6}, &Capacity::keys},
      {{"highest_kept_per_second", "kept", "up to /s", Unit::number},
       [](const Capacity& capacity) -> Cell {
         return {capacity.lowest, Tone::plain, kept(capacity)};
       }},
      {{"kept_samples", "at that", "samples", Unit::count, 6}, of_kept(&CapacityRate::samples)},
      {{"kept_misses", "at that", "missed", Unit::text, 3},
       [](const Capacity& capacity) { return misses_at(capacity, capacity.lowest); }},
      {{"kept_rho", "at that", "lock taken", Unit::share, 5}, of_kept(&CapacityRate::rho)},
      {{"lowest_missed_per_second", "missed", "from /s", Unit::number, 1}, &Capacity::highest},
      {{"missed_misses", "at that", "missed", Unit::text, 4},
       [](const Capacity& capacity) { return misses_at(capacity, capacity.highest); }},
      {{"confirmed", "", "confirmed", Unit::text, 9}, &Capacity::confirmed},
      {{"violated", "", "violated", Unit::text, 5}, &Capacity::violated},
      {{"limit", "", "limit", Unit::text, 2}, &Capacity::limit},
      {{"planned_per_second", "planned", "/s", Unit::number, 10, Show::if_any},
       &Capacity::planned_rate},
      {{"planned_per_kept", "planned", "/ kept", Unit::number, 5, Show::if_any},
       &Capacity::utilisation},
      {{"headroom", "", "headroom", Unit::share, 11, Show::if_any}, &Capacity::headroom},
  };
  return table_of(fields, capacities);
}

Table step_table(const std::vector<Capacity>& capacities) {
  std::vector<StepRow> rows;
  for (const Capacity& capacity : capacities) {
    for (const CapacityStep& step : capacity.steps) rows.push_back({&capacity, &step});
  }
  return table_of(step_fields(), rows);
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
