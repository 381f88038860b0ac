#include "choose/rank.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "choose/figure_text.h"
#include "choose/load.h"
#include "choose/survival.h"
#include "results/stats/figures.h"
#include "results/stats/statistics.h"
#include "results/stats/tiers.h"

namespace lockbench::choose {
namespace {

/// Fewer commands than this are no difference between two protocols.
constexpr double kSameCommands = 0.25;

/// Of all faults, those that harm it.
std::vector<std::string_view> hazards_of(const Candidate& candidate,
                                         const Requirements& requirements,
                                         const Evidence& evidence) {
  std::vector<std::string_view> found;
  for (const hazards::Scenario* scenario : hazards::all_scenarios()) {
    if (!requirements.fencing_resource.value_or(true) && needs_fencing_resource(scenario->name)) {
      continue;
    }
    if (evidence.report(*scenario, *candidate.strategy).harmful) found.push_back(scenario->name);
  }
  return found;
}

/// Five nodes of a quorum, a primary and two replicas, or one server.
int servers_of(const Descriptor& strategy) {
  if (strategy.traits.nodes > 1) return 5;
  return strategy.traits.needs_replicas ? 3 : 1;
}

std::string but_of(const Ranked& one, const Requirements& requirements) {
  const Descriptor& strategy = *one.candidate->strategy;
  std::vector<std::string> buts;
  if (one.candidate->unconcerned > 0) buts.emplace_back("no play of a fault to survive applies");
  if (!strategy.superseded_by.empty()) {
    buts.push_back(
        fmt::format("superseded by {}: {}", strategy.superseded_by, strategy.superseded_because));
  } else if (strategy.libraries.empty()) {
    buts.emplace_back("no known library");
  }
  if (one.blocks_successors) {
    buts.emplace_back(requirements.is_for(Use::leader)
                          ? "nobody takes over from a frozen leader"
                          : "after a crash, nobody runs the job for a whole TTL");
  }
  return fmt::format("{}", fmt::join(buts, "; "));
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
void set_tiers(std::vector<Ranked>& ranked, const Yardstick& yardstick,
               std::vector<std::vector<double>> values) {
  const bool any_sure = std::any_of(ranked.begin(), ranked.end(),
                                    [](const Ranked& one) { return one.value && !one.doubtful; });
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    if (!ranked[i].value || (any_sure && ranked[i].doubtful)) values[i].clear();
    if (!yardstick.higher_is_better) continue;
    for (double& value : values[i]) value = 1 / std::max(value, 1e-9);
  }
  const std::vector<int> tiers = results::tiers(values, results::known_scatter(yardstick.figure));
  for (std::size_t i = 0; i < ranked.size(); ++i) ranked[i].tier = tiers[i];
}

}  // namespace

Yardstick yardstick_of(const Requirements& requirements) {
  Yardstick yardstick;
  const Load asked = asked_load(requirements);
  if (!requirements.rank_by.empty()) {
    yardstick = {.figure = requirements.rank_by, .why = "as asked"};
  } else if (!requirements.slos.empty()) {
    const results::Threshold& slo = requirements.slos.front();
    const bool wants_more = slo.comparison == results::Comparison::greater ||
                            slo.comparison == results::Comparison::greater_equal;
    const bool higher = wants_more || higher_is_better(slo.figure);
    return {.figure = slo.figure, .why = "the figure of --slo", .higher_is_better = higher};
  } else if (!requirements.is_for(Use::mutex)) {
    return {.figure = "", .why = "latency does not decide"};
  } else if (asked.utilisation() >= 1) {  // more is wanted than the lock can serve
    yardstick = {.figure = "fairness.longest_wait_seconds",
                 .why = "the longest wait of any client"};
  } else if (asked.contended()) {
    yardstick = {.figure = "acquire.p99", .why = "the wait of an arriving request"};
  } else {
    yardstick = {.figure = "acquire.p50", .why = "the cost of an uncontended lock"};
  }
  yardstick.higher_is_better = higher_is_better(yardstick.figure);
  return yardstick;
}

bool blocks_takeover(const Descriptor& strategy, const Evidence& evidence) {
  const hazards::Scenario* freeze = hazards::find_scenario("pause-holding");
  if (freeze == nullptr) return false;
  // It did no harm, because the successor had to wait.
  return !evidence.report(*freeze, strategy).harmful;
}

std::vector<Ranked> rank(const std::vector<Candidate>& candidates, const Yardstick& yardstick,
                         const Requirements& requirements, const Evidence& evidence) {
  std::vector<Ranked> ranked;
  std::vector<std::vector<double>> values;
  for (const Candidate& candidate : candidates) {
    if (!candidate.qualifies()) continue;
    const Descriptor& strategy = *candidate.strategy;
    const auto measured = evidence.runs_of(strategy.name, requirements);
    Ranked& one = ranked.emplace_back(Ranked{.candidate = &candidate});
    one.servers = servers_of(strategy);
    one.hazards = hazards_of(candidate, requirements, evidence);
    one.commands = results::median(values_of(measured.runs, "commands_per_section"));
    values.push_back(yardstick.figure.empty() ? std::vector<double>()
                                              : values_of(measured.runs, yardstick.figure));
    one.value = results::median(values.back());
    one.doubtful = one.value && !measured.valid;
    one.blocks_successors =
        (requirements.is_for(Use::leader) && blocks_takeover(strategy, evidence)) ||
        (is_long_held(requirements) && !lasts(strategy));
    one.but = but_of(one, requirements);
    for (const results::Run* run : measured.runs) {
      if (yardstick.figure.empty()) break;
      one.at_least = one.at_least || results::find_figure(*run, yardstick.figure).at_least;
    }
  }
  set_tiers(ranked, yardstick, std::move(values));
  const auto key = [&](const Ranked& one) {
    const Descriptor& strategy = *one.candidate->strategy;
    const double value = one.value.value_or(0);
    const bool unmeasured = !yardstick.figure.empty() && one.tier == 0;
    // What was not measured sends more commands than anything.
    const double commands = one.commands.value_or(std::numeric_limits<double>::infinity());
    return std::tuple(!strategy.superseded_by.empty(), one.candidate->unconcerned,
                      strategy.libraries.empty(), one.blocks_successors, unmeasured, one.tier,
                      one.servers, std::round(commands / kSameCommands), one.hazards.size(),
                      yardstick.higher_is_better ? -value : value, strategy.name);
  };
  std::sort(ranked.begin(), ranked.end(),
            [&](const Ranked& a, const Ranked& b) { return key(a) < key(b); });
  return ranked;
}

}  // namespace lockbench::choose
