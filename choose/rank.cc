#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "choose/answer.h"
#include "results/stats/figures.h"
#include "results/stats/load_figures.h"

namespace lockbench::choose {
namespace {

/// Fewer commands than this are no difference between two protocols.
constexpr double kSameCommands = 0.25;
/// What is so many times as bad as the best of its tier comes last in it: that few runs show no
/// difference does not mean that there is none.
constexpr double kMuchWorse = 2;

/// The lower the better.
double badness(double value, const RankingFigure& ranked_by) {
  return ranked_by.higher_is_better ? 1 / std::max(value, 1e-9) : value;
}

/// Of all faults, those that harm it.
std::vector<std::string_view> hazards_of(const Descriptor& strategy, const Question& question) {
  std::vector<std::string_view> found;
  for (const hazards::Scenario* scenario : hazards::all_scenarios()) {
    // What a resource that checks fencing numbers does.
    const bool fenced = scenario->name.ends_with("-fenced");
    if (fenced && !question.requirements.fencing_resource.value_or(true)) continue;
    if (question.evidence.report(*scenario, strategy).harmful) found.push_back(scenario->name);
  }
  return found;
}

/// Five nodes of a quorum, a primary and two replicas, or one server.
int servers_of(const Traits& traits) {
  if (traits.nodes > 1) return 5;
  return traits.needs_replicas ? 3 : 1;
}

std::string drawback_of(const Candidate& one, const Requirements& requirements) {
  const Descriptor& strategy = *one.strategy;
  std::vector<std::string> drawbacks;
  if (one.not_applicable_faults > 0) {
    drawbacks.emplace_back("no play of a fault to survive applies");
  }
  if (!strategy.superseded_by.empty()) {
    drawbacks.push_back(
        fmt::format("superseded by {}: {}", strategy.superseded_by, strategy.superseded_because));
  } else if (strategy.libraries.empty()) {
    drawbacks.emplace_back("no known library");
  }
  if (one.blocks_successors) {
    drawbacks.emplace_back(requirements.is_for(Use::leader)
                               ? "nobody takes over from a frozen leader"
                               : "after a crash, nobody runs the job for a whole TTL");
  }
  return fmt::format("{}", fmt::join(drawbacks, "; "));
}

/// Sets what is known of it. Returns the ranking figure of each repetition, the lower the better.
std::vector<double> measure(Candidate& one, const RankingFigure& ranked_by,
                            const Question& question) {
  const Descriptor& strategy = *one.strategy;
  const Requirements& requirements = question.requirements;
  const auto measured = question.basis.runs_of(strategy.name);
  one.servers = servers_of(strategy.traits);
  if (const auto commands = results::median_figure(measured.runs, "commands_per_section")) {
    one.commands = commands->value;
  }
  one.hazards = hazards_of(strategy, question);
  one.blocks_successors =
      (requirements.is_for(Use::leader) && blocks_takeover(strategy, question.evidence)) ||
      (is_long_held(requirements) && !lasts(strategy));
  one.drawback = drawback_of(one, requirements);
  if (ranked_by.figure.empty()) return {};
  if (const auto figure = results::median_figure(measured.runs, ranked_by.figure)) {
    one.value = figure->value;
    one.at_least = figure->at_least;
  }
  one.only_invalid_runs = one.value && !measured.valid;
  std::vector<double> values;
  for (const results::Run* run : measured.runs) {
    const auto value = results::figure(*run, ranked_by.figure);
    if (value) values.push_back(badness(*value, ranked_by));
  }
  return values;
}

}  // namespace

RankingFigure ranking_figure_of(const Requirements& requirements) {
  const auto by = [](std::string figure, const char* why, bool higher = false) -> RankingFigure {
    higher = higher || results::compared_figure(figure).good == results::Good::higher;
    return {std::move(figure), why, higher};
  };
  if (!requirements.rank_by.empty()) return by(requirements.rank_by, "as asked");
  if (!requirements.slos.empty()) {
    const results::Threshold& slo = requirements.slos.front();
    return by(slo.figure, "the figure of --slo", slo.wants_more());
  }
  if (!requirements.is_for(Use::mutex)) return {.figure = "", .why = "latency does not decide"};
  const Load asked = asked_load(requirements);
  if (asked.utilisation() >= 1) {  // more is wanted than the lock can serve
    return by("fairness.longest_wait_seconds", "the longest wait of any client");
  }
  if (asked.contended()) return by("acquire.p99", "the wait of an arriving request");
  return by("acquire.p50", "the cost of an uncontended lock");
}

bool blocks_takeover(const Descriptor& strategy, const Evidence& evidence) {
  // It did no harm, because the successor had to wait.
  return !evidence.report("pause-holding", strategy).harmful;
}

std::vector<Candidate> rank(std::vector<Candidate> qualifying, const RankingFigure& ranked_by,
                            const Question& question) {
  std::vector<std::vector<double>> values;
  values.reserve(qualifying.size());
  for (Candidate& one : qualifying) values.push_back(measure(one, ranked_by, question));
  // Without any valid run, the invalid ones of all are compared: the machine disturbed them alike.
  const bool any_sure = std::ranges::any_of(
      qualifying, [](const Candidate& one) { return one.value && !one.only_invalid_runs; });
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (any_sure && qualifying[i].only_invalid_runs) values[i].clear();
  }
  const std::vector<int> tiers = results::tiers(values, results::known_scatter(ranked_by.figure));
  const auto figure = [&](const Candidate& one) {
    return badness(one.value.value_or(0), ranked_by);
  };
  std::map<int, double> best;  // of each tier
  for (std::size_t i = 0; i < values.size(); ++i) {
    Candidate& one = qualifying[i];
    one.tier = tiers[i];
    double& least = best.try_emplace(one.tier, figure(one)).first->second;
    least = std::min(least, figure(one));
  }
  // The first in which two strategies differ decides: the lower one comes first.
  const auto place = [&](const Candidate& one) {
    const Descriptor& strategy = *one.strategy;
    const bool superseded_by_practice = !strategy.superseded_by.empty();
    const int faults_that_no_play_shows = one.not_applicable_faults;
    const bool no_known_library = strategy.libraries.empty();
    const bool blocks_successors = one.blocks_successors;
    const bool not_measured = !ranked_by.figure.empty() && one.tier == 0;
    const bool much_worse_than_best = figure(one) > kMuchWorse * best.at(one.tier);
    // What was not measured sends more commands than anything.
    const double commands =
        std::round(one.commands.value_or(std::numeric_limits<double>::infinity()) / kSameCommands);
    const std::size_t plays_that_break_it = one.hazards.size();
    return std::tuple(superseded_by_practice, faults_that_no_play_shows, no_known_library,
                      blocks_successors, not_measured, one.tier, much_worse_than_best, one.servers,
                      commands, plays_that_break_it, figure(one), strategy.name);
  };
  std::ranges::sort(qualifying,
                    [&](const Candidate& a, const Candidate& b) { return place(a) < place(b); });
  return qualifying;
}

}  // namespace lockbench::choose
