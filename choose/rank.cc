#include "choose/rank.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "choose/load.h"
#include "results/stats/compared_figures.h"
#include "results/stats/figures.h"
#include "results/stats/load_figures.h"
#include "results/stats/statistics.h"
#include "results/stats/tiers.h"

namespace lockbench::choose {
namespace {

/// Fewer commands than this are no difference between two protocols.
constexpr double kSameCommands = 0.25;
/// What is so many times as bad as the best of its tier comes last in it: that few runs show no
/// difference does not mean that there is none.
constexpr double kMuchWorse = 2;

/// Of all faults, those that harm it.
std::vector<std::string_view> hazards_of(const Candidate& candidate,
                                         const Requirements& requirements,
                                         const Evidence& evidence) {
  std::vector<std::string_view> found;
  for (const hazards::Scenario* scenario : hazards::all_scenarios()) {
    // What a resource that checks fencing numbers does.
    const bool fenced = scenario->name.ends_with("-fenced");
    if (fenced && !requirements.fencing_resource.value_or(true)) continue;
    if (evidence.report(*scenario, *candidate.strategy).harmful) found.push_back(scenario->name);
  }
  return found;
}

bool is_better_high(const std::string& figure) {
  return results::compared_figure(figure).good == results::Good::higher;
}

/// Five nodes of a quorum, a primary and two replicas, or one server.
int servers_of(const Descriptor& strategy) {
  if (strategy.traits.nodes > 1) return 5;
  return strategy.traits.needs_replicas ? 3 : 1;
}

std::string drawback_of(const Ranked& one, const Requirements& requirements) {
  const Descriptor& strategy = *one.candidate->strategy;
  std::vector<std::string> drawbacks;
  if (one.candidate->not_applicable_faults > 0) {
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

std::vector<double> values_of(const std::vector<const results::Run*>& runs,
                              const std::string& figure) {
  std::vector<double> values;
  for (const results::Run* run : runs) {
    if (const auto value = results::figure(*run, figure)) values.push_back(*value);
  }
  return values;
}

/// Sets tiers by the figures of the repetitions. Without any valid run, the invalid ones of all are
/// compared: the machine disturbed them alike.
void set_tiers(std::vector<Ranked>& ranked, const RankingFigure& ranked_by,
               std::vector<std::vector<double>> values) {
  const bool any_sure = std::any_of(ranked.begin(), ranked.end(), [](const Ranked& one) {
    return one.value && !one.only_invalid_runs;
  });
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    if (!ranked[i].value || (any_sure && ranked[i].only_invalid_runs)) values[i].clear();
    if (!ranked_by.higher_is_better) continue;
    for (double& value : values[i]) value = 1 / std::max(value, 1e-9);
  }
  const std::vector<int> tiers = results::tiers(values, results::known_scatter(ranked_by.figure));
  for (std::size_t i = 0; i < ranked.size(); ++i) ranked[i].tier = tiers[i];
}

}  // namespace

RankingFigure ranking_figure_of(const Requirements& requirements) {
  RankingFigure ranked_by;
  const Load asked = asked_load(requirements);
  if (!requirements.rank_by.empty()) {
    ranked_by = {.figure = requirements.rank_by, .why = "as asked"};
  } else if (!requirements.slos.empty()) {
    const results::Threshold& slo = requirements.slos.front();
    const bool higher = slo.wants_more() || is_better_high(slo.figure);
    return {.figure = slo.figure, .why = "the figure of --slo", .higher_is_better = higher};
  } else if (!requirements.is_for(Use::mutex)) {
    return {.figure = "", .why = "latency does not decide"};
  } else if (asked.utilisation() >= 1) {  // more is wanted than the lock can serve
    ranked_by = {.figure = "fairness.longest_wait_seconds",
                 .why = "the longest wait of any client"};
  } else if (asked.contended()) {
    ranked_by = {.figure = "acquire.p99", .why = "the wait of an arriving request"};
  } else {
    ranked_by = {.figure = "acquire.p50", .why = "the cost of an uncontended lock"};
  }
  ranked_by.higher_is_better = is_better_high(ranked_by.figure);
  return ranked_by;
}

bool blocks_takeover(const Descriptor& strategy, const Evidence& evidence) {
  // It did no harm, because the successor had to wait.
  return !evidence.report("pause-holding", strategy).harmful;
}

std::vector<Ranked> rank(const std::vector<Candidate>& candidates, const RankingFigure& ranked_by,
                         const Requirements& requirements, const Evidence& evidence,
                         const Evidence::Basis& basis) {
  std::vector<Ranked> ranked;
  std::vector<std::vector<double>> values;
  for (const Candidate& candidate : candidates) {
    if (!candidate.qualifies()) continue;
    const Descriptor& strategy = *candidate.strategy;
    const auto measured = basis.runs_of(strategy.name);
    Ranked& one = ranked.emplace_back(Ranked{.candidate = &candidate});
    one.servers = servers_of(strategy);
    one.hazards = hazards_of(candidate, requirements, evidence);
    one.commands = results::median(values_of(measured.runs, "commands_per_section"));
    auto& of_strategy = values.emplace_back();
    if (!ranked_by.figure.empty()) {
      of_strategy = values_of(measured.runs, ranked_by.figure);
      if (const auto figure = results::median_figure(measured.runs, ranked_by.figure)) {
        one.value = figure->value;
        one.at_least = figure->at_least;
      }
    }
    one.only_invalid_runs = one.value && !measured.valid;
    one.blocks_successors =
        (requirements.is_for(Use::leader) && blocks_takeover(strategy, evidence)) ||
        (is_long_held(requirements) && !lasts(strategy));
    one.drawback = drawback_of(one, requirements);
  }
  set_tiers(ranked, ranked_by, std::move(values));
  for (Ranked& one : ranked) {
    if (one.tier == 1 && evidence.was_dropped(one.candidate->strategy->name)) one.tier = 2;
  }
  const auto badness = [&](const Ranked& one) {
    const double value = one.value.value_or(0);
    return ranked_by.higher_is_better ? 1 / std::max(value, 1e-9) : value;
  };
  std::map<int, double> best;  // of each tier
  for (const Ranked& one : ranked) {
    double& least = best.try_emplace(one.tier, badness(one)).first->second;
    least = std::min(least, badness(one));
  }
  const auto key = [&](const Ranked& one) {
    const Descriptor& strategy = *one.candidate->strategy;
    const bool unmeasured = !ranked_by.figure.empty() && one.tier == 0;
    // What was not measured sends more commands than anything.
    const double commands = one.commands.value_or(std::numeric_limits<double>::infinity());
    return std::tuple(!strategy.superseded_by.empty(), one.candidate->not_applicable_faults,
                      strategy.libraries.empty(), one.blocks_successors, unmeasured, one.tier,
                      badness(one) > kMuchWorse * best.at(one.tier), one.servers,
                      std::round(commands / kSameCommands), one.hazards.size(), badness(one),
                      strategy.name);
  };
  std::sort(ranked.begin(), ranked.end(),
            [&](const Ranked& a, const Ranked& b) { return key(a) < key(b); });
  return ranked;
}

}  // namespace lockbench::choose
