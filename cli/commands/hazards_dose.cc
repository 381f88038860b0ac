#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <set>

#include "cli/commands/finish.h"
#include "cli/commands/hazards.h"
#include "cli/console/session.h"
#include "hazards/dose.h"

namespace lockbench::cli {
namespace {

using hazards::DosePoint;
using hazards::Scenario;

/// More than without --dose, as these plays mostly wait.
constexpr int kDosePlaysAtOnce = 24;
constexpr int kUsualPlays = 10;

/// The scenarios whose fault has an adjustable duration. One that has none is an error if named.
std::vector<const Scenario*> select_dosed(const std::vector<std::string>& patterns) {
  auto selected = select_scenarios(patterns, false);
  std::vector<std::string_view> possible;
  for (const Scenario* scenario : hazards::all_scenarios()) {
    if (scenario->dose) possible.push_back(scenario->name);
  }
  const auto without_dose = [&](std::string_view name) {
    return UsageError("--dose: {} has no adjustable duration; these do: {}", name,
                      fmt::join(possible, ", "));
  };
  for (const std::string& pattern : patterns) {
    const Scenario* const named = hazards::find_scenario(pattern);
    if (named != nullptr && !named->dose) throw without_dose(named->name);
  }
  std::erase_if(selected, [](const Scenario* scenario) { return !scenario->dose; });
  if (selected.empty()) throw without_dose(fmt::format("{}", fmt::join(patterns, ", ")));
  return selected;
}

class DoseProgress {
 public:
  DoseProgress(Console& console, std::size_t total) : console_(console), total_(total) {}

  void on_done(const DosePoint& point) {
    ++done_;
    const std::string name =
        fmt::format("{} / {} at {} TTL", point.scenario->name, point.strategy->name, point.ratio);
    if (point.failed) console_.warn(fmt::format("{} was aborted: {}", name, point.reason));
    if (point.surprises()) console_.warn(fmt::format("{}: {}", name, point.surprise()));
    const std::string line = fmt::format("{} of {} points played", done_, total_);
    if (console_.terminal()) {
      console_.status(line);
    } else if (done_ == total_ || done_ % 50 == 0) {
      console_.note(line);
    }
  }

 private:
  Console& console_;
  const std::size_t total_;
  std::size_t done_ = 0;
};

void skip(results::Result& result, const DosePoint& point) {
  const std::string strategy(point.strategy->name);
  const bool told =
      std::any_of(result.skipped.begin(), result.skipped.end(), [&](const results::Skipped& one) {
        return one.strategy == strategy && one.reason == point.reason;
      });
  if (!told) result.skipped.push_back({strategy, point.reason});
}

/// With the points that were played, the shortest fault first, and the reasons why others were not.
results::Result with_points(results::Result result, const std::vector<DosePoint>& points) {
  std::vector<results::DosePoint> played;
  for (const DosePoint& point : points) {
    if (point.plays == 0) {
      if (!point.reason.empty()) skip(result, point);
      continue;
    }
    played.push_back({.scenario = std::string(point.scenario->name),
                      .strategy = std::string(point.strategy->name),
                      .ratio = point.ratio,
                      .ttl_seconds = seconds(point.ttl),
                      .plays = static_cast<std::uint64_t>(point.plays),
                      .violated = static_cast<std::uint64_t>(point.violated),
                      .violated_share = point.violated_share()});
  }
  std::stable_sort(played.begin(), played.end(),
                   [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
  result.experiment = results::Experiment{.points = std::move(played)};
  return result;
}

/// That a strategy could not be played is an error if it was named.
Ending ending_of(const std::vector<DosePoint>& points, const HazardOptions& options) {
  const std::set<std::string_view> named(options.strategies.begin(), options.strategies.end());
  Ending ending;
  for (const DosePoint& point : points) {
    const bool skipped = point.plays == 0 && !point.reason.empty();
    ending.errors |= point.failed || (skipped && named.contains(point.strategy->name));
    ending.exclusion_broken |= point.surprises();
  }
  return ending;
}

void note_what_is_left_out(const std::vector<DosePoint>& points, const results::Result& result,
                           Console& console) {
  int late = 0;
  for (const DosePoint& point : points) late += point.late;
  if (late > 0) {
    console.note(
        fmt::format("{} plays took longer than asked on this machine and were left out", late));
  }
  for (const results::Skipped& one : result.skipped) {
    console.note(fmt::format("skipped: {}: {}", one.strategy, one.reason));
  }
}

}  // namespace

int play_doses(const HazardOptions& options) {
  results::Result result = begin_result();
  const auto scenarios = select_dosed(options.scenarios);
  const auto strategies = select_built(options.strategies, result.skipped);
  const auto& ratios = options.dose_ratios;
  auto points = hazards::dose_points(scenarios, strategies,
                                     ratios.empty() ? hazards::usual_ratios() : ratios);
  if (points.empty()) throw UsageError("--dose: none of these strategies promises exclusion");
  result.experiment = results::Experiment{std::vector<results::DosePoint>()};
  const std::string out = out_path(options.output, result);
  Session session(options.output);
  Console& console = session.console();
  result.workload = workload_record(options);
  result.interrupted = true;  // until it is over
  ResultFile file(out, console);
  {
    const auto servers =
        must(hazards::ServerPool::open({.tls = options.tls, .clients_on = options.clients_on}));
    DoseProgress progress(console, points.size());
    auto over = points;  // those of `points` change meanwhile
    measure_doses(
        *servers, points,
        {.plays = options.dose_plays.value_or(kUsualPlays),
         .at_once = options.at_once.value_or(kDosePlaysAtOnce),
         .seed = std::random_device()()},
        [&](const DosePoint& point) {
          progress.on_done(point);
          over.at(static_cast<std::size_t>(&point - points.data())) = point;
          if (file.has_time()) file.keep(with_points(result, over));
        },
        session.stop());
    result.interrupted = session.stopped();
    result = with_points(std::move(result), points);
    file.keep(result);
  }
  note_what_is_left_out(points, result, console);
  return finish(result, options.output, file, ending_of(points, options));
}

}  // namespace lockbench::cli
