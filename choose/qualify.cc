#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "choose/answer.h"
#include "results/stats/figures.h"
#include "results/stats/load_figures.h"
#include "results/tables/text.h"

namespace lockbench::choose {
namespace {

using results::human_count;
using results::human_number;
using results::human_seconds;
using Reports = std::vector<FaultReport>;

constexpr std::string_view kTraits = "lockbench list", kArithmetic = "Little's law",
                           kSimulations = "docs/simulation.md";

bool is(const FaultReport& report, HazardOutcome outcome) {
  return report.outcome == to_string(outcome);
}

/// Whether the fault can happen to the lock, or is survived because others wait.
bool concerns(const FaultReport& report) {
  return report.blocks || !is(report, HazardOutcome::not_applicable);
}

/// "seen in FILE", "declared, not played".
std::string how_known(const FaultReport& report) {
  if (report.played) return "seen in " + report.source;
  if (is(report, HazardOutcome::not_played)) return "not played in " + report.source;
  return report.source.empty() ? "declared, not played"
                               : "declared, but not seen in " + report.source;
}

/// Joins the distinct texts that are not empty.
std::string joined(const std::vector<std::string>& texts, std::string_view separator) {
  std::vector<std::string> once;
  for (const std::string& text : texts) {
    if (!text.empty() && std::ranges::find(once, text) == once.end()) once.push_back(text);
  }
  return fmt::format("{}", fmt::join(once, separator));
}

/// The sources of the outcomes: files, or "declared".
std::string sources_of(const Reports& reports, const Descriptor& strategy) {
  std::vector<std::string> sources;
  for (const FaultReport& report : reports) {
    if (concerns(report)) sources.push_back(how_known(report));
  }
  if (sources.empty()) return fmt::format("lockbench hazards --strategies {}", strategy.name);
  return joined(sources, "; ");
}

/// "recovers"; of a play that does not apply, the reason.
std::string outcome_of(const FaultReport& report) {
  if (report.blocks) return "others wait";
  if (!is(report, HazardOutcome::not_applicable)) return report.outcome;
  return report.reason.empty() ? "does not concern it"
                               : fmt::format("does not concern it ({})", report.reason);
}

/// The condition on which a fault does no harm; empty: none.
std::string caveat_of(const FaultReport& report, const Descriptor& strategy) {
  if (report.blocks) return "others wait until the holder returns, as the lock does not expire";
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
    return "not played in these files; only declared as harmless";
  }
  return "";
}

/// Why the locks, or the clients, cannot carry so many sections per second; empty if they can.
std::string too_many(double rate, Requirements requirements) {
  if (!requirements.work_p50) return "";
  requirements.rate = rate;
  const Load asked = asked_load(requirements);
  // Passing on a lock, or beginning a section, takes a request and its reply.
  const double taken = *asked.work + asked.rtt.value_or(0);
  std::string each = human_seconds(*asked.work);
  if (asked.rtt.value_or(0) > 0) each += " and a round trip of " + human_seconds(*asked.rtt);
  // Readers hold a lock together.
  if (!requirements.shared && *asked.rate * taken >= 1) {
    return fmt::format(
        "one lock carries at most {} sections a second of {}, and the busiest is needed {} times a "
        "second",
        human_number(1 / taken), each, human_number(*asked.rate));
  }
  if (!requirements.clients || rate * taken < *requirements.clients) return "";
  return fmt::format("{} clients carry at most {} sections a second of {}",
                     human_count(*requirements.clients),
                     human_number(*requirements.clients / taken), each);
}

std::string too_many(const results::Threshold& slo, const Requirements& requirements) {
  const bool as_many = slo.wants_more() || slo.comparison == results::Comparison::equal;
  if (slo.figure != "sections_per_second" || !as_many) return "";
  return too_many(slo.bound, requirements);
}

/// One strategy against all requirements.
class Examination {
 public:
  Examination(const Descriptor& strategy, const Question& question)
      : strategy_(strategy),
        question_(question),
        requirements_(question.requirements),
        measured_(question.basis.runs_of(strategy.name)),
        simulated_(question.simulated(strategy.name)),
        found_{.strategy = &strategy} {}

  Candidate candidate() {
    const Traits& traits = strategy_.traits;
    if (traits.updates) against("", "it takes no lock: for updates that need none", kTraits);
    if (!traits.promises_exclusion && !traits.updates) {
      against("", "a control: it promises no exclusion", kTraits);
    }
    if (traits.promises_exclusion && traits.one_process) {
      against("", "it works within one process only", kTraits);
    }
    if (traits.permits) against("", "a semaphore: a lock with one permit only", kTraits);
    if (!found_.against.empty()) return std::move(found_);
    check_traits();
    for (const Survival& survival : faults_to_survive(requirements_)) check_survival(survival);
    found_.needs = needs_of(strategy_, requirements_);
    check_exclusion();
    if (requirements_.rate) check_demand(*requirements_.rate);
    for (const results::Threshold& slo : requirements_.slos) check_slo(slo);
    return std::move(found_);
  }

 private:
  void against(std::string requirement, std::string text, std::string_view evidence,
               std::string detail = "") {
    found_.against.push_back(
        {std::move(requirement), std::move(text), std::string(evidence), std::move(detail)});
  }
  void on_condition(std::string requirement, std::string text, std::string_view evidence,
                    std::string detail = "") {
    found_.conditions.push_back(
        {std::move(requirement), std::move(text), std::string(evidence), std::move(detail)});
  }

  void check_traits() {
    const Traits& traits = strategy_.traits;
    const auto& stores = requirements_.stores;
    const std::string backend(strategy_.backend);
    if (!stores.empty() && std::ranges::find(stores, backend) == stores.end()) {
      against(fmt::format("--stores {}", fmt::join(stores, ",")), "it needs another store", kTraits,
              backend);
    }
    const auto check = [&](bool asked, bool there, const char* option, const std::string& what) {
      if (asked && !there) against(option, "not " + what, kTraits);
      if (asked && there) found_.in_favour.push_back({option, what, std::string(kTraits)});
    };
    check(requirements_.fair, traits.fair, "--fair", "first come, first served");
    if (requirements_.reentrant) check_reentry();
    check(requirements_.shared, traits.shared, "--shared", "with a shared mode");
    // A holder whose work has no bound needs a lock that lasts as long as it lives.
    const bool leads = requirements_.is_for(Use::leader);
    const bool unbounded = leads || (requirements_.is_for(Use::once) && !requirements_.work_p99);
    if (!unbounded || lasts(strategy_)) return;
    against(leads ? "--for leader" : "--for once",
            "it cannot be renewed, and nobody knows how long the work takes (--work-time-p99)",
            kTraits);
  }

  /// Re-entrancy is mostly a matter of the library: it counts in its process, without a command.
  void check_reentry() {
    constexpr std::string_view kOption = "--reentrant";
    std::vector<std::string> counted, uncounted;
    for (const Library& library : strategy_.libraries) {
      if (library.similar) continue;
      const std::string name = fmt::format("{} ({})", library.name, library.language);
      if (library.reentry == Reentry::counted) counted.push_back(name);
      if (library.reentry == Reentry::uncounted) uncounted.push_back(name);
    }
    if (strategy_.traits.reentrant) {
      found_.in_favour.push_back({std::string(kOption), "reentrant", std::string(kTraits)});
    } else if (!counted.empty()) {
      on_condition(std::string(kOption),
                   fmt::format("with a library that counts: {}", fmt::join(counted, ", ")),
                   kTraits);
    } else if (!uncounted.empty()) {
      on_condition(std::string(kOption),
                   fmt::format("in one session of {}, where the first release frees the lock",
                               fmt::join(uncounted, ", ")),
                   kTraits);
    } else {
      against(std::string(kOption), "not reentrant, with no known library", kTraits);
    }
  }

  Reports reports_of(const std::vector<std::string>& scenarios) const {
    return results::each_of(scenarios, [this](const std::string& name) {
      return question_.evidence.report(name, strategy_);
    });
  }

  void survives(const std::string& requirement, const Reports& reports) {
    std::vector<std::string> outcomes;
    std::map<std::string, std::vector<const FaultReport*>> caveats;
    for (const FaultReport& report : reports) {
      outcomes.push_back(fmt::format("{}: {}", report.scenario, outcome_of(report)));
      const std::string caveat = caveat_of(report, strategy_);
      if (!caveat.empty()) caveats[caveat].push_back(&report);
    }
    for (const auto& [caveat, of] : caveats) {
      const auto scenarios = results::each_of(of, &FaultReport::scenario);
      on_condition(requirement, fmt::format("{}: {}", fmt::join(scenarios, ", "), caveat),
                   where_shown(*of.front(), strategy_));
    }
    found_.in_favour.push_back({requirement, fmt::format("{}", fmt::join(outcomes, ", ")),
                                sources_of(reports, strategy_)});
  }

  /// No play of the fault applies to the strategy.
  void is_not_concerned(const std::string& requirement, const Reports& reports,
                        const Survival& survival) {
    const Traits& traits = strategy_.traits;
    if (survival.takes_a_server && traits.nodes == 1 && !traits.needs_replicas) {
      return against(requirement, "it lives on one server, and no other can take over", kTraits);
    }
    found_.not_concerned.push_back(survival.word);
    const std::string why = joined(results::each_of(reports, &FaultReport::reason), "; ");
    on_condition(requirement,
                 "no play of this fault applies to it" + (why.empty() ? "" : ": " + why),
                 sources_of(reports, strategy_));
  }

  void check_survival(const Survival& survival) {
    const std::string requirement = option_of(survival);
    Reports plain = reports_of(survival.scenarios);
    if (std::ranges::none_of(plain, concerns) && !survival.otherwise.empty()) {
      plain = reports_of(survival.otherwise);
    }
    if (std::ranges::none_of(plain, concerns)) {
      if (!survival.is_basic) is_not_concerned(requirement, plain, survival);
      return;
    }
    const FaultReport* const harm = find_harm(plain, survival);
    if (harm == nullptr) {
      if (!survival.is_basic) survives(requirement, plain);
      return;
    }
    if (!is_rescued(survival, requirement, *harm)) {
      against(requirement, fmt::format("{}: {}{}", harm->scenario, harm->outcome, fencing_ignored_),
              where_shown(*harm, strategy_), harm->reason);
    }
  }

  /// Whether the lock survives the fault that harms it on a condition, which is added.
  bool is_rescued(const Survival& survival, const std::string& requirement,
                  const FaultReport& harm) {
    const std::string text = fmt::format("{}: {}", harm.scenario, harm.outcome);
    const std::string shown = where_shown(harm, strategy_);
    const Reports conditional = reports_of(survival.on_condition);
    if (std::ranges::any_of(conditional, concerns) && find_harm(conditional, survival) == nullptr) {
      survives(requirement, conditional);
      on_condition(requirement, survival.condition, shown, "without: " + text);
      return true;
    }
    const Reports with_fencing = reports_of(survival.fenced);
    const bool numbers_help = strategy_.traits.fencing && !with_fencing.empty() &&
                              find_harm(with_fencing, survival) == nullptr;
    const std::optional<bool> fenced = requirements_.fencing_resource;
    const bool rescued = numbers_help && fenced.value_or(true);
    if (survival.outlasted && survival.longest && runs_out(strategy_.traits)) {
      const Traits& traits = strategy_.traits;
      const bool renewed = traits.renews || traits.expiry == Expiry::session ||
                           (traits.renewable && is_long_held(requirements_));
      if (renewed || requirements_.work_p99) {
        found_.in_favour.push_back({requirement, "its TTL outlasts that", shown});
      } else {
        on_condition(requirement, "only if its TTL outlasts work and fault: give --work-time-p99",
                     shown);
      }
      on_condition(requirement,
                   fmt::format("a longer fault loses the lock ({}){}", text,
                               rescued ? ": let the resource check its fencing numbers" : ""),
                   shown, harm.reason);
      return true;
    }
    fencing_ignored_ =
        numbers_help && !rescued
            ? "; its fencing numbers do not help, as the resource does not check them"
            : "";
    if (!rescued) return false;
    survives(requirement, with_fencing);
    on_condition(
        requirement,
        fmt::format("{} the protected resource checks its fencing numbers; without that check: {}",
                    fenced ? "as" : "only if", text),
        shown, harm.reason);
    return true;
  }

  void check_exclusion() {
    const auto seen = question_.evidence.violation_of(strategy_.name);
    if (seen.run == nullptr) return;
    std::string text = "it broke exclusion";
    const results::Audit& audit = seen.run->audit;
    // A capacity search records only the verdict.
    if (audit.lost_updates + audit.overlaps + audit.fence_regressions > 0) {
      text +=
          fmt::format(": {} lost updates, {} overlaps, {} fencing numbers that did not increase",
                      audit.lost_updates, audit.overlaps, audit.fence_regressions);
    }
    against("", std::move(text), seen.source->name);
  }

  bool measured_under_less() const {
    return std::ranges::all_of(question_.others, &Difference::lighter);
  }
  bool measured_under_more() const {
    return std::ranges::none_of(question_.others, &Difference::lighter);
  }

  /// Checks whether the lock keeps up with the required rate: by arithmetic, and as measured under
  /// that load or a lighter one.
  void check_demand(double rate) {
    const std::string requirement = fmt::format("--rate {}", rate);
    if (const std::string why = too_many(rate, requirements_); !why.empty()) {
      return against(requirement, why + ", whatever the strategy", kArithmetic);
    }
    if (simulated_ != nullptr) {
      const double share = results::served_share({simulated_}).value_or(1);
      const std::string less = fmt::format("it served {:.0f} % of the sections", 100 * share);
      if (share < results::kServed) on_condition(requirement, simulated(less), kSimulations);
    }
    const auto served = results::served_share(measured_.runs);
    if (!served || *served >= results::kServed || !question_.basis.load.rate) return;
    const std::string what = fmt::format("it served {:.0f} % of the sections", 100 * *served);
    if (measured_.valid && measured_under_less()) {
      return against(requirement, "it cannot keep up", question_.basis.name, what);
    }
    on_condition(requirement,
                 what + (measured_.valid ? ", under another load" : ", in invalid runs"),
                 question_.basis.name);
  }

  /// Checks the objective by arithmetic and against the measurements. A measurement under another
  /// load proves nothing, unless a lighter load already misses the objective, or a heavier one
  /// keeps it.
  void check_slo(const results::Threshold& slo) {
    const std::string requirement = option_of(slo);
    if (const std::string why = too_many(slo, requirements_); !why.empty()) {
      return against(requirement, why + ", whatever the strategy", kArithmetic);
    }
    const std::string& source = question_.basis.name;
    if (!measured_.runs.empty() && measured_.valid) return judge(slo, requirement, source);
    const std::string shown = simulated(slo);
    const bool none = measured_.runs.empty();
    if (none && !shown.empty()) return on_condition(requirement, shown, kSimulations);
    on_condition(
        requirement,
        (none ? "not measured" : "all its runs are invalid") + (shown.empty() ? "" : "; " + shown),
        none ? "no run of it in the files" : source);
  }

  /// It shows what may be expected, and proves nothing.
  static std::string simulated(const std::string& what) {
    return fmt::format("simulated, not measured: {}: run choose --measure", what);
  }

  /// What the simulation shows of the objective; empty: nothing.
  std::string simulated(const results::Threshold& slo) const {
    if (simulated_ == nullptr) return "";
    const auto value = results::figure(*simulated_, slo.figure);
    if (!value) return "";
    const auto outcome = results::evaluate(slo, *simulated_);
    const results::Unit unit = results::compared_figure(slo.figure).unit;
    return simulated(outcome.kept()
                         ? fmt::format("{} is {}", slo.figure, results::human(*value, unit))
                         : (outcome.is_unknown ? "not shown, " : "missed, ") + outcome.reason);
  }

  bool simulation_misses(const results::Threshold& slo) const {
    if (simulated_ == nullptr) return false;
    const auto outcome = results::evaluate(slo, *simulated_);
    return !outcome.kept() && !outcome.is_unknown;
  }

  void judge(const results::Threshold& slo, const std::string& requirement,
             const std::string& source) {
    const auto& runs = measured_.runs;
    // A run that misses the objective weighs most, then one that cannot tell.
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
      return on_condition(requirement,
                          fmt::format("not shown: {}{}{}", outcome.reason,
                                      outcome.remedy.empty() ? "" : "; ", outcome.remedy),
                          source);
    }
    const bool kept = outcome.kept();
    std::string what = outcome.reason;
    if (kept) {
      const results::Unit unit = results::compared_figure(slo.figure).unit;
      what = fmt::format("{} is {}", slo.figure, results::human(*outcome.measured, unit));
    }
    if (runs.size() > 1) what += fmt::format(" in the worst of {} runs", runs.size());
    if (measured_.left_out > 0)
      what += fmt::format("; invalid runs beside: {}", measured_.left_out);
    // A lock that served the whole demand may be able to serve more.
    const bool served_all =
        question_.basis.load.rate && results::served_share(runs).value_or(0) >= results::kServed;
    const auto& others = question_.others;
    if (!kept && wants_throughput(slo) && served_all) {
      on_condition(requirement, fmt::format("not shown: {}, and no more was asked for", what),
                   source);
    } else if (kept && (others.empty() || (measured_under_more() && slo.wants_less()))) {
      found_.in_favour.push_back({requirement, what, source});
    } else if (others.empty() || (!kept && measured_under_less() && slo.wants_less())) {
      against(requirement, "it misses that", source, what);
    } else {
      const auto words = results::each_of(others, &Difference::text);
      const std::string shown = simulated(slo);
      on_condition(
          requirement,
          fmt::format("not measured under that load: {}{}, but with {}{}{}", kept ? "" : "missed, ",
                      what, fmt::join(words, " and "), shown.empty() ? "" : "; ", shown),
          source);
      // What was kept under another load does not count if a simulation of this one misses it.
      if (!kept || !simulation_misses(slo)) found_.conditions.back().kept = kept;
    }
  }

  const Descriptor& strategy_;
  const Question& question_;
  const Requirements& requirements_;
  const Evidence::Runs measured_;
  const results::Run* const simulated_;  ///< null: it was not
  std::string fencing_ignored_;          ///< said of the last fault
  Candidate found_;
};

}  // namespace

const FaultReport* find_harm(const Reports& reports, const Survival& survival) {
  const auto found = std::ranges::find_if(reports, [&](const FaultReport& report) {
    return report.harmful || (survival.must_last && is(report, HazardOutcome::known_loss)) ||
           (survival.for_good && is(report, HazardOutcome::refused));
  });
  return found == reports.end() ? nullptr : &*found;
}

std::string option_of(const results::Threshold& slo) { return fmt::format("--slo '{}'", slo.text); }

std::string option_of(const Survival& survival) {
  if (survival.is_basic) return "--waive " + survival.word;
  if (!survival.longest) return "--survive " + survival.word;
  return fmt::format("--{} {}", survival.word == "restart" ? "outage" : survival.word,
                     format_duration(*survival.longest));
}

bool runs_out(const Traits& traits) {
  return !traits.prolonged_by_contenders && !traits.ends_with_connection &&
         traits.expiry != Expiry::none;
}

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

Candidate examine(const Descriptor& strategy, const Question& question) {
  return Examination(strategy, question).candidate();
}

}  // namespace lockbench::choose
