#include "results/report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "results/file/loads.h"
#include "results/stats/figures.h"
#include "results/stats/load_figures.h"
#include "results/tables/text.h"

namespace lockbench::results::report {
namespace {

using Json = nlohmann::ordered_json;
using Scale = Chart::Axis::Scale;

constexpr std::size_t kMostShown = 8, kMostMarks = 40, kMostName = 100;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Keeps only the ends of a plateau.
void add(std::vector<Point>& points, Point point) {
  const std::size_t n = points.size();
  if (n >= 2 && points[n - 1].second == point.second && points[n - 2].second == point.second) {
    points.back() = point;
  } else {
    points.push_back(point);
  }
}

void add_marks(const Run& run, std::vector<Chart::Mark>& marks) {
  const auto add_mark = [&](Chart::Mark mark) {
    constexpr double kSame = 0.5;  // marks of several strategies this close are drawn once
    const bool there = std::ranges::any_of(marks, [&](const Chart::Mark& other) {
      return other.label == mark.label && std::abs(other.from - mark.from) < kSame;
    });
    if (!there && marks.size() < kMostMarks) marks.push_back(std::move(mark));
  };
  for (const FaultMark& mark : run.faults) {
    add_mark({mark.fault, mark.at_seconds, mark.healed_seconds});
  }
  const auto measured =
      std::ranges::find_if(run.series, [](const SeriesPoint& point) { return !point.warmup; });
  if (measured != run.series.begin() && measured != run.series.end()) {
    add_mark({"warm-up", 0, std::prev(measured)->t});
  }
}

/// Five digits: more are not visible, and enlarge the page.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

std::string text(std::string_view given) {
  return clip(printable(given.substr(0, 4 * kMostName)), kMostName);
}

Json write(const Chart::Axis& axis) {
  static constexpr std::array<std::string_view, 3> kScales{"linear", "log", "percentile"};
  return {{"title", text(axis.title)},
          {"seconds", axis.seconds},
          {"scale", kScales.at(static_cast<std::size_t>(axis.scale))}};
}

Json write(const Chart& chart) {
  Json lines = Json::array(), marks = Json::array();
  for (const Chart::Line& line : chart.lines) {
    Json points = Json::array();
    for (const auto& [x, y] : line.points) points.push_back({number(x), number(y)});
    lines.push_back(
        {{"name", text(line.name)}, {"shown", line.shown}, {"points", std::move(points)}});
  }
  for (const Chart::Mark& mark : chart.marks) {
    marks.push_back({{"label", text(mark.label)},
                     {"from", number(mark.from)},
                     {"until", mark.until ? number(*mark.until) : Json()}});
  }
  return {{"x", write(chart.x)},
          {"y", write(chart.y)},
          {"lines", std::move(lines)},
          {"marks", std::move(marks)}};
}

}  // namespace

std::vector<const Run*> typical_runs(const Result& result) {
  std::vector<const Run*> typical;
  for (auto& [strategy, runs] : grouped(result.runs, &Run::strategy)) {
    if (typical.size() == kMostStrategies) break;
    // Stable, as files may be hostile: with NaN, std::sort may leave its range.
    std::ranges::stable_sort(runs, {}, &Run::sections_per_second);
    typical.push_back(runs[runs.size() / 2]);
  }
  return typical;
}

std::vector<Point> percentile_curve(const Distribution& distribution) {
  if (!distribution.any()) return {};
  const auto count = static_cast<double>(distribution.count + distribution.censored.count);
  std::vector<Point> points;
  if (distribution.buckets.empty() && distribution.censored.buckets.empty()) {
    if (!std::isfinite(distribution.p50)) return {};
    for (const Point& known : {Point(1, distribution.min), Point(2, distribution.p50),
                               Point(10, distribution.p90), Point(20, distribution.p95),
                               Point(100, distribution.p99), Point(1000, distribution.p999)}) {
      if (known.first < count && std::isfinite(known.second)) points.push_back(known);
    }
    points.emplace_back(count, distribution.max);
    return points;
  }
  for (const PercentileStep& step : percentile_steps(distribution)) {
    const double x = 100 / (100 - step.percent);
    if (x < count && points.size() < kMostPoints - 1) add(points, {x, step.value});
  }
  add(points, {count, distribution.max});
  return points;
}

OverTime over_time(std::span<const SeriesPoint> series) {
  OverTime lines;
  const std::size_t step = series.size() / kMostPoints + 1;
  double from = 0;
  for (std::size_t i = 0; i < series.size(); i += step) {
    const auto group = series.subspan(i, std::min(step, series.size() - i));
    const double until = group.back().t;
    if (!(until > from)) continue;  // a broken file
    double sections = 0, worst = 0;
    for (const SeriesPoint& point : group) {
      sections += static_cast<double>(point.sections);
      if (std::isfinite(point.acquire_p99)) worst = std::max(worst, point.acquire_p99);
    }
    lines.rate.emplace_back(until, sections / (until - from));
    lines.p99.emplace_back(until, worst > 0 ? worst : kUnknown);
    from = until;
  }
  return lines;
}

std::vector<Chart> charts_of(const Result& result) {
  const std::vector<const Run*> runs = typical_runs(result);
  const Chart::Axis time{"seconds since the load began", false, Scale::linear};
  Chart percentiles{.title = "Time to acquire by percentile",
                    .note =
                        "Each line ends at its longest sample. A steep rise on the right means "
                        "that a few acquisitions take much longer. Waits cut off by a timeout or "
                        "the end of the run count as if they had ended then.",
                    .x = {"percentile", false, Scale::percentile},
                    .y = {"time to acquire", true}};
  Chart rate{.title = "Throughput over time", .x = time, .y = {"sections per second"}};
  Chart p99{.title = "Time to acquire over time",
            .note = "The 99th percentile of each second.",
            .x = time,
            .y = {"time to acquire, p99", true}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run* const run = runs[i];
    const bool at_first = i < kMostShown;
    if (auto curve = percentile_curve(run->acquire); !curve.empty()) {
      percentiles.lines.push_back({run->strategy, std::move(curve), at_first});
    }
    OverTime seconds = over_time(run->series);
    if (seconds.rate.size() < 2) continue;
    rate.lines.push_back({run->strategy, std::move(seconds.rate), at_first});
    p99.lines.push_back({run->strategy, std::move(seconds.p99), at_first});
    if (at_first) add_marks(*run, rate.marks);
  }
  p99.marks = rate.marks;
  const std::string which =
      "Of several repetitions, the chart shows the one with the median throughput.";
  std::vector<Chart> charts;
  for (Chart* chart : {&percentiles, &rate, &p99}) {
    if (chart->lines.empty()) continue;
    if (runs.size() < result.runs.size()) chart->note += (chart->note.empty() ? "" : " ") + which;
    charts.push_back(std::move(*chart));
  }
  return charts;
}

std::vector<Chart> sweep_charts(const Result& result) {
  const bool by_rate = is_swept(result, "rate");
  const Chart::Axis x{by_rate ? "sections asked for per second" : "clients", false};
  const std::string over = by_rate ? " by rate" : " by clients";
  Chart p99{.title = "Time to acquire" + over,
            .note = by_rate ? "The 99th percentile. Where a lock is full, it only grows with the "
                              "length of the run: the table says from where on."
                            : "The 99th percentile.",
            .x = x,
            .y = {"time to acquire, p99", true}};
  Chart rate{.title = "Throughput" + over, .x = x, .y = {"sections per second"}};
  // With both, a line for each number of clients.
  const bool both = by_rate && is_swept(result, "clients");
  const auto line_of = [&](const Run& run) {
    return both ? fmt::format("{}, {} clients", run.strategy, run.load.clients) : run.strategy;
  };
  for (const auto& [name, runs] : grouped(result.runs, line_of)) {
    std::map<double, std::vector<const Run*>> points;
    for (const Run* run : runs) {
      const double at =
          by_rate ? run->load.rate.value_or(0) : static_cast<double>(run->load.clients);
      if (at > 0) points[at].push_back(run);
    }
    if (points.empty() || p99.lines.size() == kMostStrategies) continue;
    const bool at_first = p99.lines.size() < kMostShown;
    Chart::Line waits{name, {}, at_first}, served{name, {}, at_first};
    for (const auto& [at, all] : points) {
      const auto its = counting_of(all);
      const auto wait = median_figure(its, "acquire.p99");
      const auto throughput = median_figure(its, "sections_per_second");
      waits.points.emplace_back(at, wait ? wait->value : kUnknown);
      served.points.emplace_back(at, throughput ? throughput->value : kUnknown);
    }
    p99.lines.push_back(std::move(waits));
    rate.lines.push_back(std::move(served));
  }
  return {std::move(p99), std::move(rate)};
}

std::vector<Chart> sweep_charts(const std::vector<Simulation>& simulations) {
  const auto at = [](const Simulation& one) -> std::optional<double> {
    if (!one.swept) return std::nullopt;
    return one.swept->seconds ? one.swept->seconds : one.swept->number;
  };
  const auto first = std::ranges::find_if(
      simulations, [&](const Simulation& one) { return at(one).value_or(0) > 0; });
  if (first == simulations.end()) return {};
  const std::string option = clip(printable(first->swept->option), kMostName);
  const Chart::Axis x{option, first->swept->seconds.has_value()};
  Chart violations{.title = "Grants to two holders by " + option,
                   .x = x,
                   .y = {"per million sections", false, Scale::linear}};
  Chart unavailable{.title = "Unavailability by " + option,
                    .note = "Share of the time in which a free lock was wanted in vain.",
                    .x = x,
                    .y = {"percent of the time", false, Scale::linear}};
  for (const auto& [strategy, points] : grouped(simulations, &Simulation::strategy)) {
    if (violations.lines.size() == kMostStrategies) break;
    const bool at_first = violations.lines.size() < kMostShown;
    Chart::Line broken{strategy, {}, at_first}, away{strategy, {}, at_first};
    for (const Simulation* one : points) {
      const double value = at(*one).value_or(0);
      if (!(value > 0) || broken.points.size() == kMostPoints) continue;
      broken.points.emplace_back(value, one->per_million.value);
      away.points.emplace_back(value, 100 * (1 - one->availability));
    }
    std::ranges::sort(broken.points, {}, &Point::first);
    std::ranges::sort(away.points, {}, &Point::first);
    violations.lines.push_back(std::move(broken));
    unavailable.lines.push_back(std::move(away));
  }
  return {std::move(violations), std::move(unavailable)};
}

std::string to_json(const std::vector<Chart>& charts) {
  Json document = Json::array();
  for (const Chart& chart : charts) document.push_back(write(chart));
  const std::string plain = document.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string inert;
  inert.reserve(plain.size());
  // These characters occur only in strings, where an escape has the same meaning.
  for (const char c : plain) {
    if (c == '<' || c == '>' || c == '&') {
      inert += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      inert += c;
    }
  }
  return inert;
}

}  // namespace lockbench::results::report
