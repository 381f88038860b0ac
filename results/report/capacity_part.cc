#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/report/parts.h"
#include "results/tables/experiments.h"
#include "results/tables/units.h"

namespace lockbench::results::report {
namespace {

LineChart by_rate(const Capacity& capacity) {
  LineChart chart{.title = "Time to acquire by load",
                  .note = fmt::format("Objective: {}. It is kept below the marked range and missed "
                                      "above it; in between it was not decided.",
                                      capacity.objective),
                  .x = {"offered sections a second", Measure::number},
                  .y = {"time to acquire", Measure::seconds, Scale::log}};
  Line missed{.name = "objective missed (p99)"}, p50{.name = "p50"}, p99{.name = "p99"};
  missed.dots_only = true;
  for (const CapacityRate& at : capacity.rates) {
    if (at.acquire.count == 0) continue;
    p50.points.emplace_back(at.rate, at.acquire.p50);
    p99.points.emplace_back(at.rate, at.acquire.p99);
    if (at.decision == "missed") missed.points.emplace_back(at.rate, at.acquire.p99);
  }
  for (Line* line : {&missed, &p50, &p99}) {
    if (!line->points.empty()) chart.lines.push_back(std::move(*line));
  }
  if (capacity.lowest > 0 && std::isfinite(capacity.highest)) {
    chart.marks.push_back({"capacity", "", capacity.lowest, capacity.highest});
  }
  return chart;
}

Table steps_table(const Capacity& capacity) {
  static const std::vector<std::string> shown{"purpose",
                                              "offered_per_second",
                                              "sections_per_second",
                                              "acquire_p50_seconds",
                                              "acquire_p99_seconds",
                                              "met",
                                              "valid",
                                              "server_cpu_share",
                                              "generator_cpu_share",
                                              "reason"};
  return captioned(fmt::format("{}: every step", capacity.strategy),
                   *chosen(step_table({capacity}), shown));
}

Remark headline_of(const Capacity& capacity) {
  if (capacity.violated.value_or(false)) {
    return {Tone::bad,
            fmt::format("{} violated exclusion: its capacity is meaningless.", capacity.strategy)};
  }
  if (!(capacity.lowest > 0)) {
    return {Tone::bad, fmt::format("{} was shown to meet {} at none of the loads that were tried.",
                                   capacity.strategy, capacity.objective)};
  }
  const std::string missed =
      std::isfinite(capacity.highest)
          ? fmt::format(" and misses it from {}", human_number(capacity.highest))
          : "";
  return {Tone::good, fmt::format("{} keeps {} up to {} sections a second{}; what limits it: {}.",
                                  capacity.strategy, capacity.objective,
                                  human_number(capacity.lowest), missed, capacity.limit)};
}

}  // namespace

void add_capacity_headline(const Result& result, Remarks& headline) {
  if (!result.capacity) return;
  for (const Capacity& capacity : *result.capacity) headline.push_back(headline_of(capacity));
}

void add_capacity_sections(const Result& result, Part& part) {
  if (!result.capacity || result.capacity->empty()) return;
  Section summary{.title = "Capacity"};
  summary.blocks.emplace_back(captioned("The highest load", capacity_table(*result.capacity)));
  part.sections.push_back(std::move(summary));
  for (const Capacity& capacity : *result.capacity) {
    Section section{.title = fmt::format("Capacity of {}", capacity.strategy)};
    const bool violated = capacity.violated.value_or(false);
    Remarks said;
    for (std::string& line : findings(capacity)) {
      said.push_back({violated && said.empty() ? Tone::bad : Tone::plain, std::move(line)});
    }
    if (!said.empty()) section.blocks.emplace_back(std::move(said));
    if (LineChart chart = by_rate(capacity); !chart.lines.empty()) {
      section.blocks.emplace_back(std::move(chart));
    }
    if (Table steps = steps_table(capacity); !steps.rows.empty()) {
      section.blocks.emplace_back(std::move(steps));
    }
    part.sections.push_back(std::move(section));
  }
}

}  // namespace lockbench::results::report
