#include "choose/qualify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "choose/objective.h"
#include "choose/survival.h"

namespace lockbench::choose {
namespace {

constexpr std::string_view kTraits = "lockbench list";

void check_promise(Candidate& candidate) {
  const Traits& traits = candidate.strategy->traits;
  if (!traits.promises_exclusion) {
    candidate.against.push_back({"", "a control: it promises no exclusion", std::string(kTraits)});
  } else if (traits.one_process) {
    candidate.against.push_back(
        {"", "it excludes the threads of one process only", std::string(kTraits)});
  }
}

void check_store(Candidate& candidate, const Requirements& requirements) {
  const auto& stores = requirements.stores;
  const std::string backend(candidate.strategy->backend);
  if (stores.empty() || std::find(stores.begin(), stores.end(), backend) != stores.end()) return;
  candidate.against.push_back({fmt::format("--stores {}", fmt::join(stores, ",")),
                               fmt::format("it needs {}", backend), std::string(kTraits)});
}

void check_trait(Candidate& candidate, bool asked, bool there, std::string_view option,
                 std::string_view what) {
  if (!asked) return;
  auto& reasons = there ? candidate.in_favour : candidate.against;
  reasons.push_back(
      {std::string(option), fmt::format("{}{}", there ? "" : "not ", what), std::string(kTraits)});
}

/// The outcomes of the strategy in all these scenarios.
struct Trial {
  std::vector<FaultReport> reports;

  const FaultReport* harmful() const {
    const auto found = std::find_if(reports.begin(), reports.end(),
                                    [](const FaultReport& report) { return report.harmful; });
    return found == reports.end() ? nullptr : &*found;
  }
  bool concerns() const {
    return std::any_of(reports.begin(), reports.end(), [](const FaultReport& report) {
      return report.outcome != to_string(HazardOutcome::not_applicable);
    });
  }
};

Trial try_out(const std::vector<std::string>& scenarios, const Descriptor& strategy,
              const Evidence& evidence) {
  Trial trial;
  for (const std::string& name : scenarios) {
    const hazards::Scenario* scenario = hazards::find_scenario(name);
    if (scenario != nullptr) trial.reports.push_back(evidence.report(*scenario, strategy));
  }
  return trial;
}

std::string outcomes_of(const Trial& trial) {
  std::vector<std::string> words;
  for (const FaultReport& report : trial.reports) {
    words.push_back(fmt::format("{}: {}", report.scenario, report.outcome));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

/// The source of the outcomes: the file, or that they are only declared.
std::string sources_of(const Trial& trial, const Descriptor& strategy) {
  std::vector<std::string> sources;
  for (const FaultReport& report : trial.reports) {
    if (report.outcome == to_string(HazardOutcome::not_applicable)) continue;
    const std::string source = report.played ? "seen in " + report.source : "declared, not played";
    if (std::find(sources.begin(), sources.end(), source) == sources.end()) {
      sources.push_back(source);
    }
  }
  if (sources.empty()) return "lockbench hazards --strategies " + std::string(strategy.name);
  return fmt::format("{}", fmt::join(sources, "; "));
}

void add_survived(Candidate& candidate, const std::string& requirement, const Trial& trial) {
  candidate.in_favour.push_back(
      {requirement, outcomes_of(trial), sources_of(trial, *candidate.strategy)});
  for (const FaultReport& report : trial.reports) {
    std::string_view caveat;
    if (report.outcome == to_string(HazardOutcome::refused)) {
      caveat = "meanwhile nobody is granted the lock, because the grant would be doubtful";
    } else if (!report.played && report.outcome != to_string(HazardOutcome::not_applicable)) {
      caveat = "not played in these files; that it does no harm is only declared";
    }
    if (caveat.empty()) continue;
    candidate.conditions.push_back({requirement, fmt::format("{}: {}", report.scenario, caveat),
                                    where_shown(report, *candidate.strategy)});
  }
}

/// Nothing was survived here: either there was nothing to survive, or no play can show it.
void add_unconcerned(Candidate& candidate, const std::string& requirement, const Trial& trial,
                     bool takes_a_server) {
  const Descriptor& strategy = *candidate.strategy;
  if (takes_a_server && strategy.traits.nodes == 1 && !strategy.traits.needs_replicas) {
    candidate.against.push_back(
        {requirement, "it lives on one server, and no other takes over", std::string(kTraits)});
    return;
  }
  ++candidate.unconcerned;
  std::vector<std::string> whys;
  for (const FaultReport& report : trial.reports) {
    if (!report.reason.empty()) whys.push_back(report.reason);
  }
  candidate.conditions.push_back({requirement,
                                  fmt::format("no play of this concerns it{}{}",
                                              whys.empty() ? "" : ": ", fmt::join(whys, "; ")),
                                  sources_of(trial, strategy)});
}

void check_survival(Candidate& candidate, const Survival& survival, std::optional<bool> fenced,
                    const Evidence& evidence) {
  const Descriptor& strategy = *candidate.strategy;
  const std::string requirement = "--survive " + survival.word;
  Trial plain = try_out(survival.scenarios, strategy, evidence);
  if (!plain.concerns() && !survival.otherwise.empty()) {
    plain = try_out(survival.otherwise, strategy, evidence);
  }
  if (!plain.concerns()) {
    return add_unconcerned(candidate, requirement, plain, survival.takes_a_server);
  }
  const FaultReport* harm = plain.harmful();
  if (harm == nullptr) return add_survived(candidate, requirement, plain);

  const Trial rescue = try_out(survival.fenced, strategy, evidence);
  const bool rescued = strategy.traits.fencing && !rescue.reports.empty() && !rescue.harmful();
  std::string text = fmt::format("{}: {}", harm->scenario, harm->outcome);
  if (rescued && fenced.value_or(true)) {
    add_survived(candidate, requirement, rescue);
    candidate.conditions.push_back(
        {requirement,
         fmt::format("{} the protected resource checks its fencing numbers; one that does not: {}",
                     fenced ? "as" : "only if", text),
         where_shown(*harm, strategy), harm->reason});
    return;
  }
  if (rescued) text += "; its fencing numbers are no help where nothing checks them";
  candidate.against.push_back({requirement, text, where_shown(*harm, strategy), harm->reason});
}

void check_exclusion(Candidate& candidate, const Evidence& evidence) {
  const auto seen = evidence.violation_of(candidate.strategy->name);
  if (seen.run == nullptr) return;
  candidate.against.push_back({"",
                               fmt::format("it broke exclusion: {} lost updates, {} overlaps",
                                           seen.run->audit.lost_updates, seen.run->audit.overlaps),
                               seen.source->name});
}

}  // namespace

std::string where_shown(const FaultReport& report, const Descriptor& strategy) {
  const std::string declared = report.source.empty()
                                   ? "declared, not played"
                                   : "declared, though not what was seen in " + report.source;
  return fmt::format("{}; lockbench hazards --explain {}/{}",
                     report.played ? "seen in " + report.source : declared, report.scenario,
                     strategy.name);
}

Candidate examine(const Descriptor& strategy, const Requirements& requirements,
                  const Evidence& evidence) {
  Candidate candidate{.strategy = &strategy};
  check_promise(candidate);
  if (!candidate.qualifies()) return candidate;
  const Traits& traits = strategy.traits;
  check_store(candidate, requirements);
  check_trait(candidate, requirements.fair, traits.fair, "--fair", "first come, first served");
  check_trait(candidate, requirements.reentrant, traits.reentrant, "--reentrant",
              "taken again by its holder");
  check_trait(candidate, requirements.shared, traits.shared, "--shared", "with a shared mode");
  for (const Survival& survival : requirements.survive) {
    check_survival(candidate, survival, requirements.fencing_resource, evidence);
  }
  check_exclusion(candidate, evidence);
  check_demand(candidate, requirements);
  for (const results::Threshold& slo : requirements.slos) {
    check_slo(candidate, slo, requirements, evidence);
  }
  return candidate;
}

}  // namespace lockbench::choose
