#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "results/report/curves.h"
#include "results/report/limits.h"
#include "results/report/parts.h"
#include "results/stats/figures.h"
#include "results/tables/runs.h"
#include "results/tables/units.h"

namespace lockbench::results::report {
namespace {

double if_any(const Distribution& distribution, double value) {
  return distribution.count > 0 ? value : kNone;
}

/// The verdict comes first: speed is irrelevant for a lock that is not exclusive.
Table figures_table(const Source& source) {
  const results::Table table = shown(run_table(source.result, source.flaws));
  std::vector<std::string> keys{"strategy", "verdict"};
  for (const Column& column : table.columns) {
    if (column.key != keys[0] && column.key != keys[1]) keys.push_back(column.key);
  }
  return captioned("Every strategy, audited", *chosen(table, keys));
}

/// The rows of the bar charts, the highest throughput first.
std::vector<const Run*> typical_runs(const std::vector<Group>& groups) {
  std::vector<const Run*> runs;
  runs.reserve(groups.size());
  for (const Group& group : groups) runs.push_back(&group.typical());
  std::stable_sort(runs.begin(), runs.end(), [](const Run* a, const Run* b) {
    return a->sections_per_second > b->sections_per_second;
  });
  return runs;
}

BarChart throughput(const std::vector<const Run*>& runs) {
  BarChart chart{.title = "Throughput",
                 .note = "Sections a second, on a logarithmic scale.",
                 .form = BarChart::Form::dots,
                 .x = {"sections a second", Measure::number, Scale::log},
                 .series = {{"sections a second", {}}}};
  for (const Run* run : runs) {
    chart.categories.push_back(run->strategy);
    chart.series[0].values.push_back(run->sections_per_second);
  }
  return chart;
}

BarChart latencies(const std::vector<const Run*>& runs) {
  BarChart chart{.title = "Time to acquire",
                 .note =
                     "From the intended start to the grant. The distance between the dots "
                     "shows how much the wait varies.",
                 .form = BarChart::Form::dots,
                 .x = {"time to acquire", Measure::seconds, Scale::log},
                 .series = {{"p50", {}}, {"p99", {}}, {"max", {}}}};
  for (const Run* run : runs) {
    chart.categories.push_back(run->strategy);
    const Distribution& acquire = run->acquire;
    chart.series[0].values.push_back(if_any(acquire, acquire.p50));
    chart.series[1].values.push_back(if_any(acquire, acquire.p99));
    chart.series[2].values.push_back(if_any(acquire, acquire.max));
  }
  return chart;
}

Distribution acquire_of(const Group& group) {
  std::vector<const Distribution*> all;
  for (const Run* run : group.runs) all.push_back(&run->acquire);
  return merged(all);
}

std::string with_bound(double seconds, bool at_least) {
  return (at_least ? "≥ " : "") + human_seconds(seconds);
}

/// The percentile of that name, at 1 / (1 - share); unknown between the few points of a condensed
/// result.
std::string at(const Distribution& distribution, const std::vector<Point>& curve, double x,
               std::string name) {
  constexpr double kSameFigure = 1.05;
  const auto count = static_cast<double>(distribution.count + distribution.censored.count);
  if (x > count) return "–";
  const auto reaches = [&](double samples) { return samples * x >= count * (x - 1); };
  double below = 0;
  for (const auto& bucket : all_buckets(distribution)) {
    below += static_cast<double>(bucket.count);
    if (!reaches(below)) continue;
    // A lower bound, unless as many have ended.
    double ended = 0;
    for (const auto& one : distribution.buckets) {
      if (one.upper <= kSameFigure * bucket.upper) ended += static_cast<double>(one.count);
    }
    return with_bound(std::min(bucket.upper, distribution.max), !reaches(ended));
  }
  if (below > 0) return with_bound(distribution.max, distribution.is_at_least("max"));
  const auto known =
      std::find_if(curve.begin(), curve.end(), [x](const Point& one) { return one.first == x; });
  if (known == curve.end()) return "–";
  std::erase(name, '.');
  return with_bound(known->second, distribution.is_at_least(name));
}

LineChart percentile_curves(const std::vector<Group>& groups, const std::vector<Picked>& order) {
  static constexpr std::array<std::pair<double, const char*>, 6> kStops{
      {{2, "p50"}, {10, "p90"}, {100, "p99"}, {1e3, "p99.9"}, {1e4, "p99.99"}, {1e5, "p99.999"}}};
  LineChart chart{.title = "Time to acquire by percentile",
                  .note =
                      "Each line ends with its longest sample. A steep rise on the right "
                      "means that a few acquisitions take much longer. Waits cut off by a "
                      "timeout or the end of the run count as if they had ended then.",
                  .x = {"percentile", Measure::share, Scale::percentile},
                  .y = {"time to acquire", Measure::seconds, Scale::log}};
  std::size_t without = 0;
  chart.table = {.caption = chart.title, .titles = {"strategy"}};
  for (const auto& [x, name] : kStops) chart.table.titles.emplace_back(name);
  chart.table.titles.emplace_back("max");
  for (const Picked& picked : order) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& one) {
      return one.strategy == picked.strategy;
    });
    const Distribution acquire = acquire_of(*group);
    Line line{
        .name = picked.strategy, .strategy = picked.strategy, .points = percentile_curve(acquire)};
    auto& row = chart.table.rows.emplace_back();
    row.push_back({line.name});
    for (const auto& [x, name] : kStops) row.push_back({at(acquire, line.points, x, name)});
    row.push_back({acquire.any() ? with_bound(acquire.max, acquire.is_at_least("max")) : "–"});
    without += acquire.any() && line.points.empty() ? 1 : 0;
    if (!line.points.empty()) chart.lines.push_back(std::move(line));
  }
  if (without > 0) {
    chart.note += fmt::format(
        " {} cannot be drawn: a condensed result has too few figures of "
        "repetitions.",
        without == 1 ? "One line" : fmt::format("{} lines", without));
  }
  return chart;
}

/// Where there is nothing to draw, the table alone.
Block as_block(LineChart chart) {
  return chart.lines.empty() ? Block(std::move(chart.table)) : Block(std::move(chart));
}

}  // namespace

const Run& Group::typical() const {
  std::vector<const Run*> sorted = runs;
  // Stable, as files come from anywhere: std::sort may leave its range if one is not a number.
  std::stable_sort(sorted.begin(), sorted.end(), [](const Run* a, const Run* b) {
    return a->sections_per_second < b->sections_per_second;
  });
  return *sorted[sorted.size() / 2];
}

bool Group::ever(Verdict verdict) const {
  return std::any_of(runs.begin(), runs.end(),
                     [verdict](const Run* run) { return run->audit.verdict == verdict; });
}

bool Group::kept_exclusion() const {
  return std::all_of(runs.begin(), runs.end(),
                     [](const Run* run) { return run->audit.verdict == Verdict::exclusive; });
}

std::vector<Group> groups_of(const Result& result) {
  std::vector<Group> groups;
  for (const Run& run : result.runs) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.strategy == run.strategy;
    });
    if (same == groups.end()) {
      groups.push_back({run.strategy, {&run}});
    } else {
      same->runs.push_back(&run);
    }
  }
  return groups;
}

std::vector<Picked> pick(const std::vector<Group>& groups) {
  std::vector<Picked> order;
  if (groups.size() <= kMostShownAtFirst) {
    for (const Group& group : groups) order.push_back({group.strategy, true});
    return order;
  }
  // The strategy with the highest throughput of each store.
  std::map<std::string, const Group*> best;
  for (const Group& group : groups) {
    const Run& run = group.typical();
    if (!group.kept_exclusion()) continue;
    const Group*& leader = best[run.backend];
    if (leader == nullptr || run.sections_per_second > leader->typical().sections_per_second) {
      leader = &group;
    }
  }
  for (const auto& [backend, group] : best) {
    if (order.size() < kMostShownAtFirst) order.push_back({group->strategy, true});
  }
  const bool none = order.empty();
  for (const Group& group : groups) {
    const bool there = std::any_of(order.begin(), order.end(), [&](const Picked& picked) {
      return picked.strategy == group.strategy;
    });
    if (!there) order.push_back({group.strategy, none && order.size() < kMostShownAtFirst});
  }
  return order;
}

void add_run_sections(const Source& source, const std::vector<Picked>& order, Part& part) {
  const std::vector<Group> groups = groups_of(source.result);
  if (groups.empty()) return;
  const std::vector<const Run*> runs = typical_runs(groups);
  part.sections.push_back({.title = "Strategies",
                           .intro = "A verdict other than exclusive means that the lock let two "
                                    "clients in or lost updates.",
                           .blocks = {figures_table(source), throughput(runs), latencies(runs)}});
  part.sections.push_back({.title = "Percentiles",
                           .intro = {},
                           .blocks = {as_block(percentile_curves(groups, order))}});
}

}  // namespace lockbench::results::report
