#include "choose/evidence.h"

#include <algorithm>
#include <array>

namespace lockbench::choose {
namespace {

/// `refused` does no harm: no lock rather than a doubtful one.
bool is_harmful(std::string_view outcome) {
  constexpr std::array<std::string_view, 4> kHarmless{"safe", "recovers", "not-applicable",
                                                      "refused"};
  return std::find(kHarmless.begin(), kHarmless.end(), outcome) == kHarmless.end();
}

std::string reason_of(const results::Hazard& hazard) {
  const auto found = hazard.evidence.find("reason");
  if (found == hazard.evidence.end()) return "";
  const auto* text = std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

struct Seen {
  const results::Hazard* hazard = nullptr;
  const Source* source = nullptr;
};

Seen find_play(const std::vector<Source>& sources, std::string_view scenario,
               std::string_view strategy) {
  Seen first;
  for (const Source& source : sources) {
    if (!source.result.hazards) continue;
    for (const results::Hazard& hazard : *source.result.hazards) {
      if (hazard.scenario != scenario || hazard.strategy != strategy) continue;
      if (is_harmful(hazard.observed)) return {&hazard, &source};
      if (first.hazard == nullptr) first = {&hazard, &source};
    }
  }
  return first;
}

bool has_runs(const Source& source) { return !source.result.runs.empty(); }

}  // namespace

Evidence::Evidence(std::vector<Source> files, std::vector<Source> reference)
    : files_(std::move(files)), reference_(std::move(reference)) {}

const Source* Evidence::first_with_runs() const {
  for (const auto* sources : {&files_, &reference_}) {
    const auto found = std::find_if(sources->begin(), sources->end(), has_runs);
    if (found != sources->end()) return &*found;
  }
  return nullptr;
}

Evidence::Runs Evidence::runs_of(std::string_view strategy) const {
  // Figures of the user's machine are not mixed with those of another.
  const bool own = std::any_of(files_.begin(), files_.end(), has_runs);
  for (const Source& source : own ? files_ : reference_) {
    Runs found{.runs = {}, .source = &source};
    for (const results::Run& run : source.result.runs) {
      if (run.strategy == strategy) found.runs.push_back(&run);
    }
    if (!found.runs.empty()) return found;
  }
  return {};
}

Evidence::Runs Evidence::violation_of(std::string_view strategy) const {
  for (const auto* sources : {&files_, &reference_}) {
    for (const Source& source : *sources) {
      for (const results::Run& run : source.result.runs) {
        if (run.strategy != strategy) continue;
        if (run.audit.verdict == results::Verdict::violated) return {{&run}, &source};
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
  const std::string_view declared = to_string(hazards::expected_outcome(scenario, strategy));
  Seen seen = find_play(files_, scenario.name, strategy.name);
  if (seen.hazard == nullptr) seen = find_play(reference_, scenario.name, strategy.name);
  report.outcome = seen.hazard == nullptr ? declared : seen.hazard->observed;
  report.harmful = is_harmful(report.outcome);
  const bool applies = report.outcome != to_string(HazardOutcome::not_applicable);
  if (!report.harmful && applies && is_harmful(declared)) {
    report.outcome = declared;
    report.harmful = true;
    if (seen.source != nullptr) report.source = seen.source->name;
    return report;
  }
  if (seen.hazard == nullptr) return report;
  report.played = true;
  report.reason = reason_of(*seen.hazard);
  report.source = seen.source->name;
  return report;
}

template <class Point>
Evidence::Points<Point> Evidence::points_of() const {
  for (const auto* sources : {&files_, &reference_}) {
    for (const Source& source : *sources) {
      if (!source.result.experiment) continue;
      const auto* points = std::get_if<std::vector<Point>>(&source.result.experiment->points);
      if (points != nullptr) return {*points, source.name};
    }
  }
  return {};
}

Evidence::Points<results::RenewalPoint> Evidence::renewal() const {
  return points_of<results::RenewalPoint>();
}

Evidence::Points<results::QuorumPoint> Evidence::quorum() const {
  return points_of<results::QuorumPoint>();
}

}  // namespace lockbench::choose
