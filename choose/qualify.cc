#include "choose/qualify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "choose/figure_text.h"
#include "choose/survival.h"
#include "results/tables/units.h"

namespace lockbench::choose {
namespace {

using results::Comparison;
using results::human_count;
using results::human_number;
using results::human_seconds;

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
      caveat = "the lock is not granted during the fault, because the grant would be doubtful";
    } else if (!report.played && report.outcome != to_string(HazardOutcome::not_applicable)) {
      caveat = "not played in these files; the strategy only declares that it is harmless";
    }
    if (caveat.empty()) continue;
    candidate.conditions.push_back({requirement, fmt::format("{}: {}", report.scenario, caveat),
                                    where_shown(report, *candidate.strategy)});
  }
}

/// No play of the fault applies to the strategy.
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
                                  fmt::format("no play of this fault applies to it{}{}",
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
         fmt::format("{} the protected resource checks its fencing numbers; without that check: {}",
                     fenced ? "as" : "only if", text),
         where_shown(*harm, strategy), harm->reason});
    return;
  }
  if (rescued) text += "; its fencing numbers do not help, as the resource does not check them";
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

constexpr std::string_view kArithmetic = "Little's law, for one lock";

bool is_upper_bound(const results::Threshold& slo) {
  return slo.comparison == Comparison::less || slo.comparison == Comparison::less_equal;
}

/// Whether a long mean wait shows in the figure, even if clients wait unequally.
bool shows_the_mean_wait(const std::string& figure) {
  return figure == "acquire.mean" || figure == "acquire.max" ||
         figure == "fairness.longest_wait_seconds";
}

/// Whether it does if all clients wait alike. Otherwise a percentile can stay low while a few
/// clients starve.
bool shows_a_fair_wait(const std::string& figure) {
  constexpr std::array<std::string_view, 5> kPercentiles{
      "acquire.p50", "acquire.p90", "acquire.p95", "acquire.p99", "acquire.p999"};
  return std::find(kPercentiles.begin(), kPercentiles.end(), figure) != kPercentiles.end();
}

/// Why one lock cannot carry the load; empty if it can. The work's p50 stands for its mean.
std::string too_much(const results::Threshold& slo, const Requirements& requirements) {
  if (!requirements.work_p50) return "";
  const Load asked = asked_load(requirements);
  const double most = 1 / *asked.work;
  if (slo.figure == "sections_per_second") {
    const bool wants_more = !is_upper_bound(slo) && slo.comparison != Comparison::not_equal;
    if (!wants_more || slo.bound <= most) return "";
    return fmt::format("one lock carries at most {} sections a second of {}", human_number(most),
                       human_seconds(*asked.work));
  }
  if (!is_upper_bound(slo)) return "";
  if (asked.rate) {
    if (*asked.rate < most) return "";
    return fmt::format(
        "{} sections a second of {} are more than one lock carries ({}): "
        "the queue grows without limit",
        human_number(*asked.rate), human_seconds(*asked.work), human_number(most));
  }
  const double clients = asked.clients.value_or(1);
  const double others = clients - 1;
  // A wait cannot be negative.
  const double bound = std::max(0.0, slo.bound);
  if (others * *asked.work <= bound) return "";
  const double sharing = std::floor(bound / *asked.work) + 1;
  return fmt::format(
      "if {} clients always want one lock, each waits {} at the mean ({} × {}): "
      "at least {:.0f} locks (keys) are needed",
      human_count(clients), human_seconds(others * *asked.work), human_count(others),
      human_seconds(*asked.work), std::ceil(clients / sharing));
}

/// Returns true if that decides the question.
bool cannot_be(Candidate& candidate, const results::Threshold& slo, const std::string& requirement,
               const Requirements& requirements) {
  const std::string why = too_much(slo, requirements);
  if (why.empty()) return false;
  const bool always = slo.figure == "sections_per_second" || shows_the_mean_wait(slo.figure) ||
                      (candidate.strategy->traits.fair && shows_a_fair_wait(slo.figure));
  if (always) {
    candidate.against.push_back(
        {requirement, why + ", whatever the strategy", std::string(kArithmetic)});
  } else if (shows_a_fair_wait(slo.figure)) {
    candidate.conditions.push_back(
        {requirement, why + "; it is not fair: it can meet this only if some clients starve",
         std::string(kArithmetic)});
  }
  return always;
}

void judge(Candidate& candidate, const results::Threshold& slo, const std::string& requirement,
           const Requirements& requirements, const Evidence::Runs& measured) {
  std::vector<results::Run> runs;
  for (const results::Run* run : measured.runs) runs.push_back(*run);
  const auto outcomes = results::evaluate(slo, runs);
  const auto worst = std::find_if(outcomes.begin(), outcomes.end(),
                                  [](const auto& outcome) { return !outcome.kept; });
  const auto& outcome = worst == outcomes.end() ? outcomes.front() : *worst;
  std::string what = outcome.measured ? fmt::format("{} is {}", slo.figure,
                                                    shown_figure(slo.figure, *outcome.measured))
                                      : outcome.reason;
  auto others = differences(asked_load(requirements), measured.load);
  // Without contention an objective is easier to meet: met by one client proves nothing, missed
  // does.
  if (outcome.kept && !requirements.clients && measured.load.clients &&
      !measured.load.contended()) {
    const Difference alone{"one client alone (--clients says how many share the lock)", true};
    others.push_back(alone);
  }
  const bool lighter =
      std::all_of(others.begin(), others.end(), [](const Difference& one) { return one.lighter; });
  if (others.empty() || (!outcome.kept && lighter && is_upper_bound(slo))) {
    (outcome.kept ? candidate.in_favour : candidate.against)
        .push_back({requirement, std::move(what), measured.name});
    return;
  }
  std::vector<std::string> words;
  words.reserve(others.size());
  for (const Difference& one : others) words.push_back(one.text);
  candidate.conditions.push_back(
      {requirement,
       fmt::format("not measured under that load: {}{}, but with {}",
                   outcome.kept ? "" : "missed, ", what, fmt::join(words, " and ")),
       measured.name});
}

/// Whether one lock can carry the required load with any strategy.
void check_demand(Candidate& candidate, const Requirements& requirements) {
  if (!requirements.rate || !requirements.work_p50) return;
  const Load asked = asked_load(requirements);
  const double busy = *asked.rate * *asked.work;
  if (busy < 1) return;
  candidate.conditions.push_back(
      {fmt::format("--rate {}", *requirements.rate),
       fmt::format("one lock carries at most {} sections a second of {}: only with {:.0f} locks "
                   "(keys) or more",
                   human_number(1 / *asked.work), human_seconds(*asked.work), std::floor(busy) + 1),
       std::string(kArithmetic)});
}

/// Checks the objective against what was measured and against what no lock can change. A
/// measurement under another load proves nothing, unless a lighter load already misses the
/// objective.
void check_slo(Candidate& candidate, const results::Threshold& slo,
               const Requirements& requirements, const Evidence& evidence) {
  const std::string requirement = fmt::format("--slo '{}'", slo.text);
  if (cannot_be(candidate, slo, requirement, requirements)) return;
  const auto measured = evidence.runs_of(candidate.strategy->name, requirements);
  if (measured.runs.empty()) {
    candidate.conditions.push_back({requirement, "not measured", "no run of it in the files"});
    return;
  }
  if (!measured.valid) {
    candidate.conditions.push_back({requirement, "all its runs are invalid", measured.name});
    return;
  }
  if (measured.left_out > 0) {
    candidate.conditions.push_back(
        {requirement,
         fmt::format("{} of {} runs are invalid and left out", measured.left_out,
                     measured.left_out + measured.runs.size()),
         measured.name});
  }
  judge(candidate, slo, requirement, requirements, measured);
}

}  // namespace

std::string where_shown(const FaultReport& report, const Descriptor& strategy) {
  const std::string declared =
      report.source.empty() ? "declared, not played" : "declared, but not seen in " + report.source;
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
  check_trait(candidate, requirements.reentrant, traits.reentrant, "--reentrant", "reentrant");
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
