#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "results/report/curves.h"
#include "results/report/parts.h"
#include "results/tables/experiments.h"
#include "results/tables/units.h"

namespace lockbench::results::report {
namespace {

/// Lines by name, each with its points in growing order.
class Lines {
 public:
  void add(const std::string& name, double x, double y) {
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    const auto [at, fresh] = by_name_.try_emplace(name, lines_.size());
    if (fresh) lines_.push_back({.name = name});
    lines_[at->second].points.emplace_back(x, y);
  }

  std::vector<Line> take() {
    for (Line& line : lines_) std::sort(line.points.begin(), line.points.end());
    return std::move(lines_);
  }

 private:
  std::map<std::string, std::size_t> by_name_;
  std::vector<Line> lines_;
};

/// A table beside it shows the same figures.
LineChart chart(std::string title, std::string note, Axis x, Axis y, Lines& lines) {
  return {.title = std::move(title),
          .note = std::move(note),
          .x = std::move(x),
          .y = std::move(y),
          .lines = lines.take()};
}

std::vector<Block> charts_of(const std::vector<RenewalPoint>& points) {
  Lines overhead, cpu;
  for (const RenewalPoint& point : points) {
    overhead.add(point.strategy, static_cast<double>(point.held), point.overhead);
    cpu.add(point.strategy, static_cast<double>(point.held), point.server_cpu_share);
  }
  const Axis held{"locks held", Measure::number, Scale::log};
  return {chart("Cost of renewal for other clients",
                "Throughput lost by clients that work meanwhile. The lines below say whether it "
                "can be shown.",
                held, {"share of their throughput", Measure::share}, overhead),
          chart("Cost of renewal for the server", "Of one core.", held,
                {"share of one core", Measure::share}, cpu)};
}

/// "2 down, 1 slow".
std::string faults_of(const QuorumPoint& point) {
  std::vector<std::string> faults;
  if (point.down > 0) faults.push_back(fmt::format("{} down", point.down));
  if (point.frozen > 0) faults.push_back(fmt::format("{} frozen", point.frozen));
  if (point.slow > 0) faults.push_back(fmt::format("{} slow", point.slow));
  return fmt::format("{}", fmt::join(faults, ", "));
}

std::vector<Block> charts_of(const std::vector<QuorumPoint>& points) {
  Lines healthy;
  BarChart faulty{.title = "With faulty nodes",
                  .note = "Time to acquire.",
                  .form = BarChart::Form::dots,
                  .x = {"time to acquire", Measure::seconds, Scale::log},
                  .series = {{"p50", {}}, {"p99", {}}}};
  for (const QuorumPoint& point : points) {
    if (point.acquire.count == 0) continue;
    if (point.healthy()) {
      const std::string clients =
          point.clients == 1 ? "1 client" : fmt::format("{} clients", point.clients);
      healthy.add(fmt::format("{}, {}", point.strategy, clients), static_cast<double>(point.nodes),
                  point.acquire.p50);
      continue;
    }
    faulty.categories.push_back(
        fmt::format("{} on {}: {}", point.strategy, point.nodes, faults_of(point)));
    faulty.series[0].values.push_back(point.acquire.p50);
    faulty.series[1].values.push_back(point.acquire.p99);
  }
  std::vector<Block> blocks{chart("Cost of more nodes", "All nodes healthy.",
                                  {"nodes", Measure::number},
                                  {"time to acquire, p50", Measure::seconds, Scale::log}, healthy)};
  if (!faulty.categories.empty()) blocks.emplace_back(std::move(faulty));
  return blocks;
}

std::string_view title_of(const Experiment& experiment) {
  return experiment.name() == "renewal" ? "The cost of renewal" : "The cost of a quorum";
}

}  // namespace

Remarks remarks_of(const Experiment& experiment) {
  const std::size_t broken = violations(experiment).size();
  Remarks remarks;
  for (std::string& line : findings(experiment)) {
    remarks.push_back({remarks.size() < broken ? Tone::bad : Tone::plain, std::move(line)});
  }
  return remarks;
}

void add_experiment_section(const Result& result, Part& part) {
  if (!result.experiment) return;
  const Experiment& experiment = *result.experiment;
  Section section{.title = std::string(title_of(experiment))};
  Remarks said = remarks_of(experiment);
  std::visit(
      [&](const auto& points) {
        for (Block& block : charts_of(points)) section.blocks.push_back(std::move(block));
      },
      experiment.points);
  if (!said.empty()) section.blocks.emplace_back(std::move(said));
  section.blocks.emplace_back(captioned("All points", shown(point_table(experiment))));
  part.sections.push_back(std::move(section));
}

}  // namespace lockbench::results::report
