#include "choose/qualify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "choose/survival.h"
#include "results/stats/compared_figures.h"
#include "results/stats/figures.h"
#include "results/stats/load_figures.h"
#include "results/tables/units.h"

namespace lockbench::choose {
namespace {

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
  candidate.against.push_back({.requirement = fmt::format("--stores {}", fmt::join(stores, ",")),
                               .text = "it needs another store",
                               .evidence = std::string(kTraits),
                               .detail = backend});
}

void check_trait(Candidate& candidate, bool asked, bool there, std::string_view option,
                 std::string_view what) {
  if (!asked) return;
  auto& reasons = there ? candidate.in_favour : candidate.against;
  reasons.push_back(
      {std::string(option), fmt::format("{}{}", there ? "" : "not ", what), std::string(kTraits)});
}

bool is(const FaultReport& report, HazardOutcome outcome) {
  return report.outcome == to_string(outcome);
}

/// Of the strategy in all these scenarios.
struct Outcomes {
  std::vector<FaultReport> reports;

  /// `must_last`: a loss that the holder knows of is harm, too.
  const FaultReport* harmful(bool must_last = false) const {
    const auto found = std::find_if(reports.begin(), reports.end(), [&](const FaultReport& report) {
      return report.harmful || (must_last && is(report, HazardOutcome::known_loss));
    });
    return found == reports.end() ? nullptr : &*found;
  }
  bool concerns() const {
    return std::any_of(reports.begin(), reports.end(), [](const FaultReport& report) {
      return report.blocks || !is(report, HazardOutcome::not_applicable);
    });
  }
};

Outcomes outcomes_in(const std::vector<std::string>& scenarios, const Descriptor& strategy,
                     const Evidence& evidence) {
  Outcomes outcomes;
  for (const std::string& name : scenarios) {
    outcomes.reports.push_back(evidence.report(name, strategy));
  }
  return outcomes;
}

/// "seen in FILE", "declared, not played".
std::string how_known(const FaultReport& report) {
  if (report.played) return "seen in " + report.source;
  if (is(report, HazardOutcome::not_played)) return "not played in " + report.source;
  return report.source.empty() ? "declared, not played"
                               : "declared, but not seen in " + report.source;
}

std::string outcomes_of(const Outcomes& outcomes) {
  std::vector<std::string> words;
  for (const FaultReport& report : outcomes.reports) {
    words.push_back(fmt::format("{}: {}", report.scenario, report.outcome));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

/// The source of the outcomes: the file, or that they are only declared.
std::string sources_of(const Outcomes& outcomes, const Descriptor& strategy) {
  std::vector<std::string> sources;
  for (const FaultReport& report : outcomes.reports) {
    if (is(report, HazardOutcome::not_applicable) && !report.blocks) continue;
    const std::string source = how_known(report);
    if (std::find(sources.begin(), sources.end(), source) == sources.end()) {
      sources.push_back(source);
    }
  }
  if (sources.empty()) return "lockbench hazards --strategies " + std::string(strategy.name);
  return fmt::format("{}", fmt::join(sources, "; "));
}

/// On what a fault that does no harm depends; empty: on nothing.
std::string caveat_of(const FaultReport& report, const Descriptor& strategy) {
  if (report.blocks) return "the lock does not run out: others wait for as long as its holder does";
  if (is(report, HazardOutcome::refused)) {
    return "the lock is not granted during the fault, because the grant would be doubtful";
  }
  if (is(report, HazardOutcome::known_loss)) {
    return fmt::format(
        "only if the holder looks at its lease before each step and stops when it is over{}",
        strategy.traits.fencing ? ", or the protected resource checks its fencing numbers" : "");
  }
  if (is(report, HazardOutcome::not_played)) return "not played, so not known: " + report.reason;
  if (!report.played && !is(report, HazardOutcome::not_applicable)) {
    return "not played in these files; the strategy only declares that it is harmless";
  }
  return "";
}

void add_survived(Candidate& candidate, const std::string& requirement, const Outcomes& outcomes,
                  bool is_basic) {
  if (is_basic) return;
  candidate.in_favour.push_back(
      {requirement, outcomes_of(outcomes), sources_of(outcomes, *candidate.strategy)});
  for (const FaultReport& report : outcomes.reports) {
    const std::string caveat = caveat_of(report, *candidate.strategy);
    if (caveat.empty()) continue;
    candidate.conditions.push_back({requirement, fmt::format("{}: {}", report.scenario, caveat),
                                    where_shown(report, *candidate.strategy)});
  }
}

/// No play of the fault applies to the strategy.
void add_not_applicable(Candidate& candidate, const std::string& requirement,
                        const Outcomes& outcomes, const Survival& survival) {
  if (survival.is_basic) return;
  const Descriptor& strategy = *candidate.strategy;
  if (survival.takes_a_server && strategy.traits.nodes == 1 && !strategy.traits.needs_replicas) {
    candidate.against.push_back(
        {requirement, "it lives on one server, and no other takes over", std::string(kTraits)});
    return;
  }
  ++candidate.not_applicable_faults;
  std::vector<std::string> whys;
  for (const FaultReport& report : outcomes.reports) {
    const bool known = std::find(whys.begin(), whys.end(), report.reason) != whys.end();
    if (!report.reason.empty() && !known) whys.push_back(report.reason);
  }
  candidate.conditions.push_back({requirement,
                                  fmt::format("no play of this fault applies to it{}{}",
                                              whys.empty() ? "" : ": ", fmt::join(whys, "; ")),
                                  sources_of(outcomes, strategy)});
}

void check_survival(Candidate& candidate, const Survival& survival, std::optional<bool> fenced,
                    const Evidence& evidence) {
  const Descriptor& strategy = *candidate.strategy;
  const std::string requirement = (survival.is_basic ? "basic: " : "--survive ") + survival.word;
  Outcomes plain = outcomes_in(survival.scenarios, strategy, evidence);
  if (!plain.concerns() && !survival.otherwise.empty()) {
    plain = outcomes_in(survival.otherwise, strategy, evidence);
  }
  if (!plain.concerns()) {
    return add_not_applicable(candidate, requirement, plain, survival);
  }
  const FaultReport* harm = plain.harmful(survival.must_last);
  if (harm == nullptr) return add_survived(candidate, requirement, plain, survival.is_basic);

  const Outcomes with_fencing = outcomes_in(survival.fenced, strategy, evidence);
  const bool rescued =
      strategy.traits.fencing && !with_fencing.reports.empty() && !with_fencing.harmful();
  std::string text = fmt::format("{}: {}", harm->scenario, harm->outcome);
  if (rescued && fenced.value_or(true)) {
    add_survived(candidate, requirement, with_fencing, survival.is_basic);
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

/// A holder whose work has no bound needs a lock that lasts as long as it lives.
void check_use(Candidate& candidate, const Requirements& requirements) {
  const bool unbounded = requirements.is_for(Use::leader) ||
                         (requirements.is_for(Use::once) && !requirements.work_p99);
  if (!unbounded || lasts(*candidate.strategy)) return;
  candidate.against.push_back(
      {requirements.is_for(Use::leader) ? "--for leader" : "--for once",
       "it cannot be renewed, and nobody knows how long the work takes (--work-time-p99)",
       std::string(kTraits)});
}

void check_exclusion(Candidate& candidate, const Evidence& evidence) {
  const auto seen = evidence.violation_of(candidate.strategy->name);
  if (seen.run == nullptr) return;
  std::string text = "it broke exclusion";
  const results::Audit& audit = seen.run->audit;
  // Of a search for capacity only the verdict is known.
  if (audit.lost_updates + audit.overlaps + audit.fence_regressions > 0) {
    text += fmt::format(": {} lost updates, {} overlaps, {} fencing numbers that did not increase",
                        audit.lost_updates, audit.overlaps, audit.fence_regressions);
  }
  candidate.against.push_back({"", std::move(text), seen.source->name});
}

constexpr std::string_view kArithmetic = "Little's law";

/// Why the locks, or the clients, cannot carry so many sections a second; empty if they can.
std::string too_many(double rate, Requirements requirements) {
  if (!requirements.work_p50) return "";
  requirements.rate = rate;
  const Load asked = asked_load(requirements);
  // A lock is passed on, and a section begun, by a request and its reply.
  const double taken = *asked.work + asked.rtt.value_or(0);
  std::string each = human_seconds(*asked.work);
  if (asked.rtt.value_or(0) > 0) each += " and a round trip of " + human_seconds(*asked.rtt);
  // Readers hold a lock together.
  if (!requirements.shared && *asked.rate * taken >= 1) {
    return fmt::format(
        "one lock carries at most {} sections a second of {}, and the busiest is wanted {} times a "
        "second",
        human_number(1 / taken), each, human_number(*asked.rate));
  }
  if (!requirements.clients || rate * taken < *requirements.clients) return "";
  return fmt::format("{} clients carry at most {} sections a second of {}",
                     human_count(*requirements.clients),
                     human_number(*requirements.clients / taken), each);
}

/// The same of an objective.
std::string too_many(const results::Threshold& slo, const Requirements& requirements) {
  const bool as_many = slo.wants_more() || slo.comparison == results::Comparison::equal;
  if (slo.figure != "sections_per_second" || !as_many) return "";
  return too_many(slo.bound, requirements);
}

/// Why so many requests wait longer than that; empty if they need not. One that arrives at any time
/// finds the lock held with a probability of rate × work. The rest of that section is longer than x
/// with a probability of at least 1 − x / work, however the work is distributed (the residual life
/// of renewal theory, and Jensen's inequality).
std::string waits_longer(const results::Threshold& slo, const Requirements& requirements) {
  const auto share = results::percentile_share(slo.figure);
  // Of the p99 alone nobody knows how long the work takes on average.
  if (!requirements.work_p50 || !requirements.rate || requirements.shared) return "";
  if (!share || !slo.figure.starts_with("acquire.") || !slo.wants_less()) return "";
  if (requirements.key_skew > 0) return "";  // the other locks are held less
  const Load asked = asked_load(requirements);
  if (!asked.contended()) return "";
  const double held = std::min(1.0, *asked.rate * *asked.work);
  const double longer = held * (1 - slo.bound / *asked.work);
  if (longer <= 1 - *share) return "";
  return fmt::format(
      "a lock that is held for {:.0f} % of the time, {} at once, lets at least {} % wait longer "
      "than {}",
      100 * held, human_seconds(*asked.work), human_number(100 * longer), human_seconds(slo.bound));
}

bool all_lighter(const std::vector<Difference>& others) {
  return std::all_of(others.begin(), others.end(),
                     [](const Difference& one) { return one.lighter; });
}

void judge(Candidate& candidate, const results::Threshold& slo, const std::string& requirement,
           const Requirements& requirements, const Evidence::Runs& measured) {
  const auto& runs = measured.runs;
  // A run that misses it weighs most, then one that does not tell.
  const auto badness = [&](const results::ThresholdOutcome& one) {
    const double value = one.measured.value_or(0);
    return std::pair(one.kept() ? 0 : one.is_unknown ? 1 : 2, slo.wants_less() ? value : -value);
  };
  auto outcome = results::evaluate(slo, *runs.front());
  for (const results::Run* run : runs) {
    auto its = results::evaluate(slo, *run);
    if (badness(its) > badness(outcome)) outcome = std::move(its);
  }
  if (outcome.is_unknown) {
    candidate.conditions.push_back({requirement, "not shown: " + outcome.reason, measured.name});
    return;
  }
  const bool kept = outcome.kept();
  std::string what = outcome.reason;
  if (kept) {
    const results::Unit unit = results::compared_figure(slo.figure).unit;
    what = fmt::format("{} is {}", slo.figure, results::human(*outcome.measured, unit));
  }
  if (runs.size() > 1) what += fmt::format(" in the worst of {} runs", runs.size());
  // A lock that served all that it was asked for may be able to serve more.
  const bool served_all =
      measured.load.rate && results::served_share(runs).value_or(0) >= results::kServed;
  if (!kept && wants_throughput(slo) && served_all) {
    candidate.conditions.push_back({requirement,
                                    fmt::format("not shown: {}, and no more was asked for", what),
                                    measured.name});
    return;
  }
  const auto others = differences(asked_load(requirements), measured.load);
  if (kept && others.empty()) {
    candidate.in_favour.push_back({requirement, std::move(what), measured.name});
    return;
  }
  if (others.empty() || (!kept && all_lighter(others) && slo.wants_less())) {
    candidate.against.push_back({requirement, "it misses that", measured.name, std::move(what)});
    return;
  }
  std::vector<std::string> words;
  words.reserve(others.size());
  for (const Difference& one : others) words.push_back(one.text);
  candidate.conditions.push_back(
      {requirement,
       fmt::format("not measured under that load: {}{}, but with {}", kept ? "" : "missed, ", what,
                   fmt::join(words, " and ")),
       measured.name});
}

/// Whether the lock keeps up with the required rate: by arithmetic, and as measured under that load
/// or a lighter one.
void check_demand(Candidate& candidate, const Requirements& requirements,
                  const Evidence::Basis& basis) {
  if (!requirements.rate) return;
  const std::string requirement = fmt::format("--rate {}", *requirements.rate);
  const Load asked = asked_load(requirements);
  if (const std::string why = too_many(*requirements.rate, requirements); !why.empty()) {
    candidate.against.push_back(
        {requirement, why + ", whatever the strategy", std::string(kArithmetic)});
    return;
  }
  const auto measured = basis.runs_of(candidate.strategy->name);
  const auto served = results::served_share(measured.runs);
  if (!served || *served >= results::kServed || !measured.load.rate) return;
  const std::string what = fmt::format("it served {:.0f} % of the sections", 100 * *served);
  const auto others = differences(asked, measured.load);
  if (measured.valid && all_lighter(others)) {
    candidate.against.push_back({requirement, "it cannot keep up", measured.name, what});
  } else {
    candidate.conditions.push_back(
        {requirement, what + (measured.valid ? ", under another load" : ", in invalid runs"),
         measured.name});
  }
}

/// Checks the objective against what was measured and against what no lock can change. A
/// measurement under another load proves nothing, unless a lighter load already misses the
/// objective.
void check_slo(Candidate& candidate, const results::Threshold& slo,
               const Requirements& requirements, const Evidence::Basis& basis) {
  const std::string requirement = option_of(slo);
  for (const std::string& why : {too_many(slo, requirements), waits_longer(slo, requirements)}) {
    if (why.empty()) continue;
    candidate.against.push_back(
        {requirement, why + ", whatever the strategy", std::string(kArithmetic)});
    return;
  }
  const auto measured = basis.runs_of(candidate.strategy->name);
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

std::string option_of(const results::Threshold& slo) { return fmt::format("--slo '{}'", slo.text); }

bool is_long_held(const Requirements& requirements) {
  constexpr Duration kLong = std::chrono::minutes(1);
  if (requirements.is_for(Use::mutex)) return false;
  return requirements.is_for(Use::leader) || requirements.work_p99.value_or(kLong) >= kLong;
}

bool lasts(const Descriptor& strategy) {
  const Traits& traits = strategy.traits;
  return traits.renews || traits.renewable || traits.expiry == Expiry::session;
}

std::string where_shown(const FaultReport& report, const Descriptor& strategy) {
  return fmt::format("{}; lockbench hazards --explain {}/{}", how_known(report), report.scenario,
                     strategy.name);
}

Candidate examine(const Descriptor& strategy, const Requirements& requirements,
                  const Evidence& evidence, const Evidence::Basis& basis) {
  Candidate candidate{.strategy = &strategy};
  check_promise(candidate);
  if (!candidate.qualifies()) return candidate;
  const Traits& traits = strategy.traits;
  check_store(candidate, requirements);
  check_trait(candidate, requirements.fair, traits.fair, "--fair", "first come, first served");
  check_trait(candidate, requirements.reentrant, traits.reentrant, "--reentrant", "reentrant");
  check_trait(candidate, requirements.shared, traits.shared, "--shared", "with a shared mode");
  check_use(candidate, requirements);
  for (const Survival& survival : faults_to_survive(requirements)) {
    check_survival(candidate, survival, requirements.fencing_resource, evidence);
  }
  check_exclusion(candidate, evidence);
  check_demand(candidate, requirements, basis);
  for (const results::Threshold& slo : requirements.slos) {
    check_slo(candidate, slo, requirements, basis);
  }
  return candidate;
}

}  // namespace lockbench::choose
