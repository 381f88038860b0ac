#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "results/report/limits.h"
#include "results/report/parts.h"
#include "results/stats/comparison.h"
#include "results/tables/units.h"

namespace lockbench::results::report {
namespace {

constexpr std::size_t kMostDifferences = 6;

struct Side {
  std::string name;
  const Result* result = nullptr;
  std::vector<Group> groups;

  const Run* find(const std::string& strategy) const {
    for (const Group& group : groups) {
      if (group.strategy == strategy) return &group.typical();
    }
    return nullptr;
  }
};

std::vector<Side> sides_of(std::span<const Source> sources) {
  std::vector<Side> sides;
  for (const Source& source : sources) {
    if (source.result.runs.empty()) continue;
    std::string name = std::filesystem::path(source.file).filename().string();
    if (!source.load.empty()) name = sources.size() > 1 ? source.load : name;
    sides.push_back({std::move(name), &source.result, groups_of(source.result)});
  }
  return sides;
}

/// In more than one of them, in the order in which they first occur.
std::vector<std::string> shared_strategies(const std::vector<Side>& sides) {
  std::vector<std::string> shared;
  for (const Side& side : sides) {
    for (const Group& group : side.groups) {
      const auto times = std::count_if(sides.begin(), sides.end(), [&](const Side& other) {
        return other.find(group.strategy) != nullptr;
      });
      const bool there = std::find(shared.begin(), shared.end(), group.strategy) != shared.end();
      if (times > 1 && !there) shared.push_back(group.strategy);
    }
  }
  if (shared.size() > kMostStrategies) shared.resize(kMostStrategies);
  return shared;
}

template <class Value>
BarChart side_by_side(std::string title, Axis x, const std::vector<Side>& sides,
                      const std::vector<std::string>& strategies, Value value) {
  BarChart chart{.title = std::move(title),
                 .form = BarChart::Form::dots,
                 .x = std::move(x),
                 .categories = strategies};
  for (const Side& side : sides) {
    auto& series = chart.series.emplace_back(BarChart::Series{side.name, {}});
    for (const std::string& strategy : strategies) {
      const Run* run = side.find(strategy);
      series.values.push_back(run == nullptr ? kNone : value(*run));
    }
  }
  return chart;
}

/// Results of different workloads or machines say little about each other.
Remarks differences(const std::vector<Side>& sides) {
  Remarks remarks;
  for (std::size_t i = 1; i < sides.size(); ++i) {
    std::vector<std::string> differing = incompatibilities(*sides[0].result, *sides[i].result);
    if (differing.empty()) continue;
    const std::size_t more = differing.size() - std::min(differing.size(), kMostDifferences);
    differing.resize(differing.size() - more);
    remarks.push_back(
        {Tone::doubtful,
         fmt::format("{} and {} differ in {}{}", sides[0].name, sides[i].name,
                     fmt::join(differing, "; "), more > 0 ? fmt::format("; {} more", more) : "")});
  }
  return remarks;
}

}  // namespace

std::vector<Section> overview_of(std::span<const Source> sources) {
  std::vector<Section> sections;
  const std::vector<Side> sides = sides_of(sources);
  const std::vector<std::string> strategies = shared_strategies(sides);
  if (sides.size() < 2 || strategies.empty()) return sections;
  Section section{.title = "Side by side",
                  .intro =
                      "Strategies that several results have. lockbench compare tells "
                      "whether a difference is significant."};
  if (Remarks said = differences(sides); !said.empty()) {
    section.blocks.emplace_back(std::move(said));
  }
  section.blocks.emplace_back(
      side_by_side("Throughput", {"sections a second", Measure::number, Scale::log}, sides,
                   strategies, [](const Run& run) { return run.sections_per_second; }));
  section.blocks.emplace_back(side_by_side(
      "Time to acquire, p99", {"time to acquire", Measure::seconds, Scale::log}, sides, strategies,
      [](const Run& run) { return run.acquire.count > 0 ? run.acquire.p99 : kNone; }));
  sections.push_back(std::move(section));
  return sections;
}

}  // namespace lockbench::results::report
