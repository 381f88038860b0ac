#include "choose/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "choose/figure_text.h"
#include "choose/survival.h"
#include "results/stats/figures.h"
#include "results/stats/statistics.h"
#include "results/tables/units.h"

namespace lockbench::choose {
namespace {

using Faults = std::set<std::string>;

/// Of all faults, those that harm it.
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

void set_value(Ranked& ranked, const Yardstick& yardstick, const Requirements& requirements,
               const Evidence& evidence) {
  const auto measured = evidence.runs_of(ranked.candidate->strategy->name, requirements);
  std::vector<double> values;
  for (const results::Run* run : measured.runs) {
    if (const auto value = results::figure(*run, yardstick.figure)) values.push_back(*value);
  }
  ranked.value = results::median(values);
  ranked.doubtful = ranked.value && !measured.valid;
}

/// Sets `better` to the strategy that survives everything that this one survives and more; of
/// several, the one that the fewest faults harm. `all`: the faults of all that qualify.
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

Yardstick yardstick_of(const Requirements& requirements, const std::optional<Load>& measured) {
  Yardstick yardstick;
  const Load load = measured.value_or(Load{});
  const double clients = load.clients.value_or(1);
  if (!requirements.rank_by.empty()) {
    yardstick = {.figure = requirements.rank_by, .why = "as asked"};
  } else if (!requirements.slos.empty()) {
    const results::Threshold& slo = requirements.slos.front();
    const bool wants_more = slo.comparison == results::Comparison::greater ||
                            slo.comparison == results::Comparison::greater_equal;
    const bool higher = wants_more || higher_is_better(slo.figure);
    return {.figure = slo.figure, .why = "the figure of --slo", .higher_is_better = higher};
  } else if (requirements.rate) {
    yardstick = {.figure = "acquire.p99",
                 .why = load.rate
                            ? "the wait of an arriving request"
                            : "99th percentile in a closed loop: no run has clients that arrive at "
                              "a rate"};
  } else if (requirements.clients.value_or(1) > 1) {
    yardstick = {.figure = "fairness.longest_wait_seconds",
                 .why = load.contended()
                            ? fmt::format("the longest that any of {} contending clients waited",
                                          results::human_count(clients))
                            : "the longest wait of all, though no clients contended"};
  } else {
    yardstick = {.figure = "acquire.p50",
                 .why = load.contended()
                            ? fmt::format("median with {} contending clients: no run has a single "
                                          "client",
                                          results::human_count(clients))
                            : "the cost of an uncontended lock"};
  }
  if (!measured) yardstick.why += ", once it is measured";
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
    set_value(one, yardstick, requirements, evidence);
    find_better(one, faults, all);
  }
  const auto key = [&](const Ranked& one) {
    const double value = one.value.value_or(0);
    return std::tuple(one.candidate->unconcerned, one.better != nullptr, !one.value || one.doubtful,
                      yardstick.higher_is_better ? -value : value, one.candidate->strategy->name);
  };
  std::sort(ranked.begin(), ranked.end(),
            [&](const Ranked& a, const Ranked& b) { return key(a) < key(b); });
  return ranked;
}

}  // namespace lockbench::choose
