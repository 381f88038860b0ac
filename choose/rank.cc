#include "choose/rank.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "choose/figure_text.h"
#include "choose/survival.h"
#include "results/figures.h"
#include "results/statistics.h"

namespace lockbench::choose {
namespace {

using Faults = std::set<std::string>;

/// All that does it harm, of all the faults there are.
Faults harmful_faults(const Candidate& candidate, const Requirements& requirements,
                      const Evidence& evidence) {
  Faults faults;
  for (const hazards::Scenario* scenario : hazards::all_scenarios()) {
    if (!requirements.fencing_resource.value_or(true) && needs_fencing_resource(scenario->name)) {
      continue;
    }
    const FaultReport report = evidence.report(*scenario, *candidate.strategy);
    if (report.harmful) faults.insert(report.scenario);
  }
  return faults;
}

bool on_same_servers(const Descriptor& a, const Descriptor& b) {
  return server_set(a) == server_set(b) && a.traits.nodes == b.traits.nodes;
}

std::optional<double> value_of(const Candidate& candidate, const Yardstick& yardstick,
                               const Evidence& evidence) {
  std::vector<double> values;
  for (const results::Run* run : evidence.runs_of(candidate.strategy->name).runs) {
    if (const auto value = results::figure(*run, yardstick.figure)) values.push_back(*value);
  }
  return results::median(values);
}

/// With the faults of all that qualify: the one that makes this one superfluous and leaves least.
void find_better(Ranked& ranked, const Faults& faults,
                 const std::vector<std::pair<const Candidate*, Faults>>& all) {
  const Faults* fewest = nullptr;
  for (const auto& [other, others] : all) {
    const bool fewer = others.size() < faults.size() &&
                       std::includes(faults.begin(), faults.end(), others.begin(), others.end());
    if (!fewer || !on_same_servers(*ranked.candidate->strategy, *other->strategy)) continue;
    if (fewest != nullptr && others.size() >= fewest->size()) continue;
    fewest = &others;
    ranked.better = other;
  }
  if (fewest == nullptr) return;
  std::set_difference(faults.begin(), faults.end(), fewest->begin(), fewest->end(),
                      std::back_inserter(ranked.falls_to));
}

}  // namespace

Yardstick yardstick_of(const Requirements& requirements) {
  Yardstick yardstick;
  if (!requirements.rank_by.empty()) {
    yardstick = {.figure = requirements.rank_by, .why = "as asked"};
  } else if (!requirements.slos.empty()) {
    yardstick = {.figure = requirements.slos.front().figure, .why = "what --slo is about"};
  } else if (requirements.rate) {
    yardstick = {.figure = "acquire.p99", .why = "what an arriving request feels"};
  } else if (requirements.clients.value_or(1) > 1) {
    yardstick = {.figure = "fairness.longest_wait_seconds",
                 .why = "the longest that any of the contending clients waited"};
  } else {
    yardstick = {.figure = "acquire.p50", .why = "what a lock costs that nobody else wants"};
  }
  yardstick.higher_is_better = higher_is_better(yardstick.figure);
  return yardstick;
}

std::vector<Ranked> rank(const std::vector<Candidate>& candidates, const Yardstick& yardstick,
                         const Requirements& requirements, const Evidence& evidence) {
  std::vector<std::pair<const Candidate*, Faults>> all;
  for (const Candidate& candidate : candidates) {
    if (candidate.qualifies()) {
      all.emplace_back(&candidate, harmful_faults(candidate, requirements, evidence));
    }
  }
  std::vector<Ranked> ranked;
  for (const auto& [candidate, faults] : all) {
    Ranked& one = ranked.emplace_back();
    one.candidate = candidate;
    one.value = value_of(*candidate, yardstick, evidence);
    find_better(one, faults, all);
  }
  const auto key = [&](const Ranked& one) {
    const double value = one.value.value_or(0);
    return std::tuple(one.candidate->unconcerned, one.better != nullptr, !one.value,
                      yardstick.higher_is_better ? -value : value, one.candidate->strategy->name);
  };
  std::sort(ranked.begin(), ranked.end(),
            [&](const Ranked& a, const Ranked& b) { return key(a) < key(b); });
  return ranked;
}

}  // namespace lockbench::choose
