#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/report/curves.h"
#include "results/report/parts.h"
#include "results/tables/units.h"

namespace lockbench::results::report {
namespace {

const Group& group_named(const std::vector<Group>& groups, const std::string& strategy) {
  return *std::find_if(groups.begin(), groups.end(),
                       [&](const Group& group) { return group.strategy == strategy; });
}

std::string seconds_or(const std::optional<double>& seconds, std::string_view otherwise) {
  return seconds ? human_seconds(*seconds) : std::string(otherwise);
}

Table faults_table(const std::vector<Group>& groups) {
  Table table{
      .caption = "Faults during the run",
      .titles = {"strategy", "fault", "at", "healed at", "recovered after", "lowest throughput"}};
  for (const Group& group : groups) {
    for (const FaultMark& mark : group.typical().faults) {
      const bool compared = std::isfinite(mark.lowest_share);
      const Tone tone = mark.recovery_seconds ? Tone::good : Tone::bad;
      table.rows.push_back(
          {{group.strategy},
           {mark.fault},
           {human_seconds(mark.at_seconds)},
           {seconds_or(mark.healed_seconds, "not healed")},
           {seconds_or(mark.recovery_seconds, compared ? "not before the end" : "–"),
            compared ? tone : Tone::plain},
           {compared ? fmt::format("{:.0f} %", 100 * mark.lowest_share) : "–"}});
    }
  }
  return table;
}

std::vector<Mark> marks_of(const Run& run) {
  std::vector<Mark> marks;
  for (const FaultMark& mark : run.faults) {
    marks.push_back({mark.fault, run.strategy, mark.at_seconds, mark.healed_seconds});
  }
  const auto measured = std::find_if(run.series.begin(), run.series.end(),
                                     [](const SeriesPoint& point) { return !point.warmup; });
  if (measured != run.series.begin() && measured != run.series.end()) {
    marks.push_back({"warm-up", run.strategy, 0, std::prev(measured)->t});
  }
  return marks;
}

/// Lowest, middle and highest of each line: its shape in figures.
void add_row(Table& table, const Line& line, Measure measure) {
  std::vector<double> values;
  for (const Point& point : line.points) {
    if (std::isfinite(point.second)) values.push_back(point.second);
  }
  if (values.empty()) return;
  std::sort(values.begin(), values.end());
  const auto text = [measure](double value) {
    return Cell{measure == Measure::seconds ? human_seconds(value) : human_number(value)};
  };
  table.rows.push_back(
      {{line.name}, text(values.front()), text(values[values.size() / 2]), text(values.back())});
}

LineChart chart_of(std::string title, std::string note, Axis y) {
  LineChart chart{.title = std::move(title), .note = std::move(note)};
  chart.x = {"seconds since the load began", Measure::number, Scale::linear};
  chart.y = std::move(y);
  chart.table = {.caption = chart.title, .titles = {"strategy", "lowest", "middle", "highest"}};
  return chart;
}

}  // namespace

void add_time_section(const std::vector<Group>& groups, const std::vector<Picked>& order,
                      Part& part) {
  const bool repeated = std::any_of(groups.begin(), groups.end(),
                                    [](const Group& group) { return group.runs.size() > 1; });
  LineChart rate =
      chart_of("Throughput over time", "", {"sections a second", Measure::number, Scale::log});
  LineChart p99 = chart_of("Time to acquire over time", "The 99th percentile of each second.",
                           {"time to acquire, p99", Measure::seconds, Scale::log});
  for (const Picked& picked : order) {
    const Run& run = group_named(groups, picked.strategy).typical();
    const OverTime lines = over_time(run.series);
    if (lines.rate.size() < 2) continue;
    rate.lines.push_back({picked.strategy, picked.strategy, lines.rate});
    p99.lines.push_back({picked.strategy, picked.strategy, lines.p99});
    add_row(rate.table, rate.lines.back(), Measure::number);
    add_row(p99.table, p99.lines.back(), Measure::seconds);
    for (const Mark& mark : marks_of(run)) {
      rate.marks.push_back(mark);
      p99.marks.push_back(mark);
    }
  }
  Section section{.title = "Over time"};
  if (repeated) {
    section.intro = "Of several repetitions, the one with the median throughput.";
  }
  if (Table faults = faults_table(groups); !faults.rows.empty()) {
    section.blocks.emplace_back(std::move(faults));
  }
  if (!rate.lines.empty()) {
    section.blocks.emplace_back(std::move(rate));
    section.blocks.emplace_back(std::move(p99));
  }
  if (!section.blocks.empty()) part.sections.push_back(std::move(section));
}

}  // namespace lockbench::results::report
