#include "choose/evidence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "results/file/json.h"
#include "results/file/loads.h"
#include "results/stats/load_figures.h"
#include "results/tables/hazards.h"

namespace lockbench::choose {
namespace {

struct Seen {
  const results::Hazard* hazard = nullptr;
  const Source* source = nullptr;
};

/// One that does harm, else one that was played, else any.
Seen find_play(const std::vector<Source>& sources, std::string_view scenario,
               std::string_view strategy) {
  const std::string_view not_played = to_string(HazardOutcome::not_played);
  Seen first;
  for (const Source& source : sources) {
    if (!source.result.hazards) continue;
    for (const results::Hazard& hazard : *source.result.hazards) {
      if (hazard.scenario != scenario || hazard.strategy != strategy) continue;
      if (results::does_harm(hazard.observed)) return {&hazard, &source};
      if (first.hazard == nullptr || first.hazard->observed == not_played) {
        first = {&hazard, &source};
      }
    }
  }
  return first;
}

/// Under a fault that was injected, figures are those of the fault.
bool is_valid(const results::Run& run) {
  return results::is_of_the_lock(run) && run.faults.empty();
}

/// Those that can answer the question, the nearest first; what was measured in vain last.
std::multimap<std::pair<bool, double>, const Source*> by_distance(
    const std::vector<Source>& sources, const Load& asked) {
  std::multimap<std::pair<bool, double>, const Source*> found;
  for (const Source& source : sources) {
    const auto& runs = source.result.runs;
    if (runs.empty()) continue;
    const auto away = distance(asked, measured_load(source.result));
    if (away) found.emplace(std::pair(std::ranges::none_of(runs, is_valid), *away), &source);
  }
  return found;
}

/// A run of which only the waits at a rate are known.
results::Run run_at(const results::Capacity& capacity, const results::CapacityRate& at) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  results::Run run;
  run.strategy = capacity.strategy;
  run.acquire = at.acquire;
  run.generator.valid = at.invalid_steps < at.steps;
  run.sections_per_second = run.commands_per_section = run.attempts_per_grant = kUnknown;
  run.fairness.jain = run.fairness.longest_wait_seconds = kUnknown;
  if (capacity.violated == true) run.audit.verdict = results::Verdict::violated;
  return run;
}

/// What a search for capacity measured, each rate a result of one run, of all its steps together.
void add_rates(const Source& source, std::vector<Source>& found) {
  if (!source.result.capacity) return;
  // There may be many rates, each with a copy: no more than what says under which load it was.
  const results::Result heading{.lockbench = source.result.lockbench,
                                .environment = source.result.environment,
                                .workload = source.result.workload};
  for (const results::Capacity& capacity : *source.result.capacity) {
    for (const results::CapacityRate& at : capacity.rates) {
      Source& one = found.emplace_back(Source{source.name, heading});
      one.result.workload["rate"] = at.rate;
      if (capacity.ceiling && !results::workload_number(source.result, "hold")) {
        one.result.workload["hold"] = static_cast<double>(capacity.keys) / *capacity.ceiling;
      }
      one.result.runs = {run_at(capacity, at)};
    }
  }
}

/// A source for each load.
std::vector<Source> split(std::vector<Source> sources) {
  std::vector<Source> found;
  for (Source& source : sources) {
    add_rates(source, found);
    if (!results::has_several_loads(source.result)) {
      found.push_back(std::move(source));
      continue;
    }
    for (results::Result& one : results::split_by_load(source.result)) {
      found.push_back({source.name, std::move(one)});
    }
  }
  return found;
}

}  // namespace

Evidence::Evidence(std::vector<Source> files, std::vector<Source> reference)
    : files_(split(std::move(files))), reference_(split(std::move(reference))) {}

Evidence::Basis Evidence::basis_for(const Requirements& requirements) const {
  // Figures of the user's machine are not mixed with those of another.
  const Load asked = asked_load(requirements);
  auto sources = by_distance(files_, asked);
  const bool own = !sources.empty();
  if (!own) sources = by_distance(reference_, asked);
  Basis basis;
  if (sources.empty()) return basis;
  const Source& nearest = *sources.begin()->second;
  basis.load = measured_load(nearest.result);
  std::set<std::string> used;
  std::map<std::string, std::string> other;
  for (const auto& [away, source] : sources) {
    const auto reasons = results::incompatibilities(nearest.result, source->result);
    if (reasons.empty()) {
      basis.sources.push_back(source);
      used.insert(source->name);
    } else if (own && source->name != nearest.name) {
      // Other loads of one file differ in the same way.
      other.emplace(source->name, fmt::format("{}", fmt::join(reasons, ", ")));
    }
  }
  for (const auto& [name, why] : other) {
    if (!used.contains(name)) basis.left_out.push_back(fmt::format("{} ({})", name, why));
  }
  basis.name = fmt::format("{}: {}", fmt::join(used, ", "), describe(basis.load));
  return basis;
}

Evidence::Runs Evidence::Basis::runs_of(std::string_view strategy) const {
  Runs found;
  for (const Source* source : sources) {
    for (const results::Run& run : source->result.runs) {
      if (run.strategy == strategy) found.runs.push_back(&run);
    }
  }
  const auto is_invalid = [](const results::Run* run) { return !is_valid(*run); };
  found.valid = found.runs.empty() || !std::ranges::all_of(found.runs, is_invalid);
  if (found.valid) found.left_out = std::erase_if(found.runs, is_invalid);
  return found;
}

const results::Run* Evidence::slowest_release(std::string_view strategy) const {
  for (const auto* sources : {&files_, &reference_}) {
    const results::Run* slowest = nullptr;
    for (const Source& source : *sources) {
      // An experiment says what locks cost there, not under a load that is asked for.
      if (results::is_experiment(source.result)) continue;
      for (const results::Run& run : source.result.runs) {
        if (run.strategy != strategy || !run.faults.empty()) continue;
        // Files come from anywhere: not a number is above nothing.
        if (run.release.max > (slowest ? slowest->release.max : 0)) slowest = &run;
      }
    }
    if (slowest != nullptr) return slowest;
  }
  return nullptr;
}

Evidence::Violation Evidence::violation_of(std::string_view strategy) const {
  for (const auto* sources : {&files_, &reference_}) {
    for (const Source& source : *sources) {
      for (const results::Run& run : source.result.runs) {
        if (run.strategy != strategy) continue;
        if (run.audit.verdict == results::Verdict::violated) return {&run, &source};
      }
    }
  }
  return {};
}

FaultReport Evidence::report(const hazards::Scenario& scenario, const Descriptor& strategy) const {
  FaultReport report{.scenario = std::string(scenario.name)};
  if (auto why = hazards::not_applicable(scenario, strategy)) {
    report.outcome = to_string(HazardOutcome::not_applicable);
    report.reason = *std::move(why);
    return report;
  }
  report.blocks = hazards::never_gets_there(scenario, strategy.traits);
  const std::string_view declared = to_string(hazards::expected_outcome(scenario, strategy));
  const std::string_view not_played = to_string(HazardOutcome::not_played);
  Seen seen = find_play(files_, scenario.name, strategy.name);
  if (seen.hazard == nullptr || seen.hazard->observed == not_played) {
    const Seen other = find_play(reference_, scenario.name, strategy.name);
    if (other.hazard != nullptr) seen = other;
  }
  report.outcome = seen.hazard == nullptr ? declared : seen.hazard->observed;
  report.harmful = results::does_harm(report.outcome);
  const bool applies = report.outcome != to_string(HazardOutcome::not_applicable);
  if (!report.harmful && applies && results::does_harm(declared)) {
    report.outcome = declared;
    report.harmful = true;
    if (seen.source != nullptr) report.source = seen.source->name;
    return report;
  }
  if (seen.hazard == nullptr) return report;
  report.played = report.outcome != not_played;
  report.reason = results::text_in(seen.hazard->evidence, "reason");
  report.source = seen.source->name;
  return report;
}

FaultReport Evidence::report(std::string_view scenario, const Descriptor& strategy) const {
  const hazards::Scenario* const found = hazards::find_scenario(scenario);
  if (found == nullptr) throw std::logic_error(fmt::format("no such scenario: {}", scenario));
  return report(*found, strategy);
}

Evidence::Experiment Evidence::experiment(bool (*has)(const results::Load&)) const {
  for (const auto* sources : {&files_, &reference_}) {
    for (const Source& source : *sources) {
      Experiment found{.runs = {}, .source = source.name};
      for (const results::Run& run : source.result.runs) {
        if (has(run.load)) found.runs.push_back(&run);
      }
      if (!found.runs.empty()) return found;
    }
  }
  return {};
}

std::vector<Source> reference() {
  std::vector<Source> sources;
  for (const ReferenceFile& file : reference_files()) {
    auto result = results::from_json(file.text);
    const std::string name = fmt::format("results/reference/{}", file.name);
    if (!result) throw std::runtime_error(fmt::format("{}: {}", name, result.error()));
    sources.push_back({name, std::move(*result)});
  }
  return sources;
}

}  // namespace lockbench::choose
