#include "choose/answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "results/stats/figures.h"
#include "results/stats/load_figures.h"
#include "results/tables/text.h"

namespace lockbench::choose {
namespace {

using results::human_number;
using results::human_seconds;

/// A smaller difference in commands does not distinguish two protocols.
constexpr double kSameCommands = 0.25;
/// A strategy this many times as bad as the best of its tier comes last in it: too few runs to show
/// a difference do not mean that there is none.
constexpr double kMuchWorse = 2;
/// No lock keeps its waits short if it is taken for more of the time; the highest share that was
/// measured at a rate; the most keys of --keys.
constexpr double kTooBusy = 0.85, kComfortable = 0.7, kMostKeys = 1e7;
/// Beside longer work, the time of the lock itself does not matter.
constexpr Duration kLongWork = std::chrono::minutes(1);

/// The value turned so that lower is better.
double badness(double value, const RankingFigure& ranked_by) {
  return ranked_by.higher_is_better ? 1 / std::max(value, 1e-9) : value;
}

/// The scenarios that harm the strategy.
std::vector<std::string_view> hazards_of(const Descriptor& strategy, const Question& question) {
  std::vector<std::string_view> found;
  for (const hazards::Scenario* scenario : hazards::all_scenarios()) {
    // These scenarios need a resource that checks fencing numbers.
    const bool fenced = scenario->name.ends_with("-fenced");
    if (fenced && !question.requirements.fencing_resource.value_or(true)) continue;
    if (question.evidence.report(*scenario, strategy).harmful) found.push_back(scenario->name);
  }
  return found;
}

/// Five nodes of a quorum; a primary and two replicas, or three members, if one may fail; or one
/// server.
int servers_of(const Descriptor& strategy, const Requirements& requirements) {
  if (strategy.traits.nodes > 1) return 5;
  return strategy.traits.needs_replicas || needs_members(strategy, requirements) ? 3 : 1;
}

/// The required languages for which no library implements it.
std::vector<std::string> missing_languages(const Descriptor& strategy,
                                           const Requirements& requirements) {
  std::vector<std::string> missing;
  for (const std::string& language : requirements.languages) {
    if (!implements(strategy, requirements.use.value_or(Use::mutex), language)) {
      missing.push_back(language);
    }
  }
  return missing;
}

bool has_library(const Descriptor& strategy) {
  return !std::ranges::all_of(strategy.libraries, &Library::similar);
}

/// Whether a measurement under another load missed an objective, or none shows it.
bool leaves_objective_open(const Candidate& one) {
  return std::ranges::any_of(one.conditions, [](const Reason& reason) {
    return reason.requirement.starts_with("--slo") && !reason.kept.value_or(false);
  });
}

/// Sets what puts the candidate behind those without it, the most important first.
void add_drawbacks(Candidate& one, const Requirements& requirements) {
  const Descriptor& strategy = *one.strategy;
  std::vector<std::string> texts;
  one.drawbacks.clear();
  // What is worth no words has no text.
  const auto add = [&](std::size_t weight, std::string text) {
    one.drawbacks.push_back(weight);
    if (weight > 0 && !text.empty()) texts.push_back(std::move(text));
  };
  const bool superseded = !strategy.superseded_by.empty();
  const auto missing = missing_languages(strategy, requirements);
  add(superseded,
      fmt::format("superseded by {}: {}", strategy.superseded_by, strategy.superseded_because));
  add(strategy.traits.pooled && std::ranges::any_of(requirements.survive, &Survival::for_good),
      "each client that holds or waits occupies a session of the pool");
  add(one.not_concerned.size(), "a fault to survive was never played on it");
  add(leaves_objective_open(one), "");
  add(!has_library(strategy), superseded || !missing.empty() ? ""
                              : is_recipe(strategy) ? "lockbench's own design, in no library"
                                                    : "no known library");
  add(missing.size(), superseded ? "" : fmt::format("no library for {}", fmt::join(missing, ", ")));
  add(one.blocks_successors, requirements.is_for(Use::leader)
                                 ? "nobody takes over from a frozen leader"
                                 : "after a crash, nobody runs the job for a whole TTL");
  // The user has to see to its renewal, for work that no TTL outlasts.
  const Traits& traits = strategy.traits;
  add(is_long_held(requirements) && !traits.renews && traits.expiry != Expiry::session,
      "it does not renew itself");
  one.drawback = fmt::format("{}", fmt::join(texts, "; "));
}

/// Whether nobody can take over while a holder is frozen.
bool blocks_takeover(const Descriptor& strategy, const Evidence& evidence) {
  // If the freeze did no harm, the successor had to wait.
  return !evidence.report("pause-holding", strategy).harmful;
}

/// Sets what is known of the candidate. Returns the ranking figure of each repetition, turned so
/// that lower is better.
std::vector<double> measure(Candidate& one, const RankingFigure& ranked_by,
                            const Question& question) {
  const Descriptor& strategy = *one.strategy;
  const Requirements& requirements = question.requirements;
  const auto measured = question.basis.runs_of(strategy.name);
  one.servers = servers_of(strategy, requirements);
  if (const auto commands = results::median_figure(measured.runs, "commands_per_section")) {
    one.commands = commands->value;
  }
  one.hazards = hazards_of(strategy, question);
  one.blocks_successors =
      (requirements.is_for(Use::leader) && blocks_takeover(strategy, question.evidence)) ||
      (is_long_held(requirements) && !lasts(strategy));
  add_drawbacks(one, requirements);
  if (ranked_by.figure.empty()) return {};
  if (const auto figure = results::median_figure(measured.runs, ranked_by.figure)) {
    one.value = figure->value;
    one.at_least = figure->at_least;
  }
  if (const results::Run* const run = question.simulated(strategy.name)) {
    one.simulated = results::median_figure({run}, ranked_by.figure);
  }
  one.only_invalid_runs = one.value && !measured.valid;
  one.runs = measured.runs.size();
  one.left_out = measured.left_out;
  std::vector<double> values;
  if (one.only_invalid_runs) return values;
  for (const results::Run* run : measured.runs) {
    const auto value = results::figure(*run, ranked_by.figure);
    if (value) values.push_back(badness(*value, ranked_by));
  }
  return values;
}

RankingFigure ranking_figure_of(const Requirements& requirements) {
  const auto by = [](std::string figure, const char* why, bool higher = false) -> RankingFigure {
    higher = higher || results::compared_figure(figure).good == results::Good::higher;
    return {std::move(figure), why, higher};
  };
  if (!requirements.rank_by.empty()) return by(requirements.rank_by, "as asked");
  if (!requirements.slos.empty()) {
    const results::Threshold& slo = requirements.slos.front();
    return by(slo.figure, "the figure of --slo", slo.wants_more());
  }
  if (!requirements.is_for(Use::mutex)) return {.figure = "", .why = "latency does not decide"};
  const Load asked = asked_load(requirements);
  if (asked.work.value_or(0) > seconds(kLongWork)) {
    return {.figure = "", .why = "clients wait for each other's work, whatever the lock"};
  }
  if (asked.contended()) return by("acquire.p99", "the wait of an arriving request");
  return by("acquire.p50", "the cost of an uncontended lock");
}

/// Sets how far each is behind in simulations.
void compare_simulated(std::vector<Candidate>& qualifying, const RankingFigure& ranked_by) {
  constexpr double kLeast = 1e-9;
  const auto figure = [&](const Candidate& one) {
    return std::max(badness(one.simulated->value, ranked_by), kLeast);
  };
  std::map<std::vector<std::size_t>, double> best;  // by drawbacks
  for (const Candidate& one : qualifying) {
    if (!one.simulated) continue;
    double& least = best.try_emplace(one.drawbacks, figure(one)).first->second;
    least = std::min(least, figure(one));
  }
  for (Candidate& one : qualifying) {
    if (!one.simulated) continue;
    const double ratio = figure(one) / best.at(one.drawbacks);
    one.behind = static_cast<int>(std::log(ratio) / std::log(kMuchWorse));
  }
}

/// The qualifying strategies with their figures, the best first.
std::vector<Candidate> rank(std::vector<Candidate> qualifying, const RankingFigure& ranked_by,
                            const Question& question) {
  std::vector<std::vector<double>> values;
  values.reserve(qualifying.size());
  for (Candidate& one : qualifying) values.push_back(measure(one, ranked_by, question));
  compare_simulated(qualifying, ranked_by);
  const std::vector<int> tiers = results::tiers(values, results::known_scatter(ranked_by.figure));
  const auto figure = [&](const Candidate& one) {
    return badness(one.value.value_or(0), ranked_by);
  };
  std::map<int, double> best;  // of each tier
  for (std::size_t i = 0; i < values.size(); ++i) {
    Candidate& one = qualifying[i];
    one.tier = tiers[i];
    double& least = best.try_emplace(one.tier, figure(one)).first->second;
    least = std::min(least, figure(one));
  }
  // The first property in which two strategies differ decides; the lower value comes first.
  const auto place = [&](const Candidate& one) {
    const bool not_measured = !ranked_by.figure.empty() && one.tier == 0;
    const int unknown = !not_measured ? 0 : one.simulated ? 1 : 2;
    const bool much_worse_than_best = figure(one) > kMuchWorse * best.at(one.tier);
    // A strategy that was not measured counts as sending the most commands.
    const double commands =
        std::round(one.commands.value_or(std::numeric_limits<double>::infinity()) / kSameCommands);
    const std::size_t plays_that_break_it = one.hazards.size();
    return std::tuple(one.drawbacks, unknown, one.behind, one.tier, much_worse_than_best,
                      one.servers, commands, plays_that_break_it, figure(one), one.strategy->name);
  };
  std::ranges::sort(qualifying,
                    [&](const Candidate& a, const Candidate& b) { return place(a) < place(b); });
  return qualifying;
}

std::vector<Relaxation> relaxations_of(const Answer& answer, const Question& question) {
  // Grouped by all obstacles of a candidate, if these are only the user's requirements.
  std::map<std::set<std::string>, std::vector<Candidate>> groups;
  std::size_t fewest = SIZE_MAX;
  for (const Candidate& candidate : answer.ruled_out) {
    std::set<std::string> obstacles;
    for (const Reason& reason : candidate.against) obstacles.insert(reason.requirement);
    if (obstacles.contains("")) continue;
    fewest = std::min(fewest, obstacles.size());
    groups[obstacles].push_back(candidate);
  }
  std::vector<Relaxation> relaxations;
  for (const auto& [obstacles, freed] : groups) {
    if (obstacles.size() > fewest) continue;
    Relaxation& one = relaxations.emplace_back();
    for (const std::string& requirement : obstacles) {
      one.requirements.push_back(requirement);
      for (const Survival& fault : faults_to_survive(question.requirements)) {
        const bool its = option_of(fault) == requirement && !fault.workaround.empty();
        if (its) one.instead.push_back(fault.workaround);
      }
    }
    for (const Candidate& ranked : rank(freed, answer.ranked_by, question)) {
      one.strategies.emplace_back(ranked.strategy->name);
    }
  }
  return relaxations;
}

/// --for leader.
std::vector<Takeover> takeovers_of(const Candidate& best, const Evidence& evidence) {
  const Descriptor& strategy = *best.strategy;
  const auto ttl = parse_duration(ttl_of(best.settings));
  const bool by_connection = strategy.traits.ends_with_connection;
  const bool waits = blocks_takeover(strategy, evidence);
  std::vector<Takeover> takeovers;
  const auto add = [&](const char* after, const char* name, const std::string& text) {
    const FaultReport report = evidence.report(name, strategy);
    std::string seen = fmt::format("{}: {}", name, report.outcome);
    if (!report.reason.empty()) seen += fmt::format(" ({}, with a short TTL)", report.reason);
    takeovers.push_back({after, text, seen});
  };
  const std::string after_ttl =
      ttl ? fmt::format("another client leads after {} to {}", human_seconds(seconds(*ttl) * 2 / 3),
                        human_seconds(seconds(longest_blocked(strategy, *ttl))))
          : "another client leads after the TTL";
  const std::string twice =
      after_ttl + "; the old leader may act until it notices: fence its writes";
  const std::string known =
      after_ttl + "; the old leader knows in time if it looks at its lease: else fence its writes";
  const bool knows =
      evidence.report("partition-holder", strategy).outcome == to_string(HazardOutcome::known_loss);
  add("a crash", "crash-holding",
      by_connection ? "another client leads as soon as the connection closes" : after_ttl);
  add("the death of its host", by_connection ? "host-crash-keepalive" : "host-crash",
      by_connection ? fmt::format("another client leads after up to {} (keepalives)",
                                  human_seconds(seconds(kKeepalives)))
                    : after_ttl);
  const auto by_election = ttl ? longest_blocked_by_election(strategy, *ttl) : std::nullopt;
  if (by_election) {
    const Duration more = *by_election - longest_blocked(strategy, *ttl);
    add("a crash while the servers elect their own leader", "crash-holding",
        fmt::format("another client leads after up to {}: the new leader renews all sessions, and "
                    "each further election adds up to {}",
                    human_seconds(seconds(*by_election)), human_seconds(seconds(more))));
  }
  add("a freeze", "pause-holding", waits ? "nobody leads until the frozen leader returns" : twice);
  add("a partition", "partition-holder",
      waits   ? "nobody else leads until the server ends the connection"
      : knows ? known
              : twice);
  const FaultReport isolated = evidence.report("member-isolated", strategy);
  if (isolated.outcome != to_string(HazardOutcome::not_applicable)) {
    add("a partition of its server", "member-isolated", isolated.harmful ? twice : known);
  }
  return takeovers;
}

/// A statement that rejects a write after another client's grant.
std::string guard_of(const Descriptor& strategy) {
  const std::string by_version =
      "UPDATE t SET ..., version = version + 1 WHERE id = :id AND version = :seen; if no row "
      "changed, another client has written: read again";
  if (!strategy.traits.fencing) return by_version + " (this lock has no fencing numbers)";
  return "UPDATE t SET ..., fence = :number WHERE id = :id AND fence <= :number; if no row "
         "changed, "
         "a later holder has written: stop (:number is the grant's fencing number; if your library "
         "has none: " +
         by_version + ")";
}

std::string assumption_of(const Requirements& requirements, const Load& asked) {
  std::vector<std::string> assumed;
  if (const auto rate = wanted_rate(requirements); rate && !requirements.rate) {
    assumed.push_back(fmt::format("for that throughput, --rate {:.4g} is assumed", *rate));
  }
  if (asked.shared) {
    assumed.push_back(fmt::format("of the sections, {:.0f} % are assumed to read", 100 * kReaders));
  }
  if (asked.assumed_utilisation) {
    assumed.push_back(
        fmt::format("without --rate, a lock is assumed that is busy for {:.3g} % of the time",
                    100 * *asked.assumed_utilisation));
  }
  if (asked.assumed_work) {
    assumed.push_back(fmt::format("without --work-time-p50, work of {} on average is assumed",
                                  human_seconds(*asked.assumed_work)));
  }
  return fmt::format("{}", fmt::join(assumed, "; "));
}

/// A load that locks can keep, instead of one that none can.
struct Eased {
  Requirements requirements;
  std::string why;
  double taken = 0;  ///< by the load that was required
};

/// Nothing if a lock can keep the required rate, or if more locks would not help.
std::optional<Eased> ease(const Requirements& requirements) {
  const Load asked = asked_load(requirements);
  if (!requirements.rate || !requirements.work_p50 || !asked.contended() || asked.shared) return {};
  const double turn = *asked.work + asked.rtt.value_or(0);
  const double taken = *asked.rate * turn;
  if (taken < kTooBusy) return {};
  Eased eased{.requirements = requirements, .why = {}, .taken = taken};
  auto& keys = eased.requirements.keys;
  const double enough = kComfortable / (*requirements.rate * turn);  // of the busiest lock's share
  keys = static_cast<int>(std::ceil(std::min(1 / enough, kMostKeys)));
  // With a skew, the busiest lock keeps more than its part.
  while (*keys < kMostKeys && busiest_share(eased.requirements) > enough * 1.001) {
    *keys = static_cast<int>(std::min(2.0 * *keys, kMostKeys));
  }
  if (busiest_share(eased.requirements) > enough * 1.001) return {};
  const int had = requirements.keys.value_or(1);
  const double work = kComfortable / *asked.rate - asked.rtt.value_or(0);
  eased.why = fmt::format(
      "No lock keeps {}/s on {} key{}: {} would be taken {:.3g} % of the time ({}/s of {}), and "
      "above {:.0f} % no lock keeps its waits short. {} keys would do (at most {:.0f} %){}",
      human_number(*requirements.rate), had, had == 1 ? "" : "s",
      had == 1                    ? "it"
      : requirements.key_skew > 0 ? "the busiest"
                                  : "each",
      100 * taken, human_number(*asked.rate), human_seconds(turn), 100 * kTooBusy, *keys,
      100 * kComfortable,
      work > 0 ? fmt::format(", or work of {} instead of {}", human_seconds(work),
                             human_seconds(*asked.work))
               : ", or a nearer server");
  return eased;
}

/// See Answer::not_decided.
std::string not_decided(const Answer& answer, const Question& question, bool measured) {
  const Candidate& best = answer.ranked.front();
  const Evidence::Basis& basis = question.basis;
  const auto missed = std::ranges::find(best.conditions, std::optional(false), &Reason::kept);
  if (missed != best.conditions.end()) return missed->requirement + ": " + missed->text;
  if (!measured && (basis.sources.empty() || !question.others.empty())) return "";
  if (measured && !answer.ranked_by.figure.empty() && (best.tier == 0 || !basis.own)) {
    return fmt::format("{} has no valid run under that load", best.strategy->name);
  }
  for (const results::Threshold& slo : answer.requirements.slos) {
    const std::string option = option_of(slo);
    const auto is_of_slo = [&](const Reason& one) { return one.requirement == option; };
    if (std::ranges::any_of(best.in_favour, is_of_slo)) continue;
    const auto why = std::ranges::find_if(best.conditions, is_of_slo);
    return option + (why == best.conditions.end() ? "" : ": " + why->text);
  }
  return "";
}

}  // namespace

std::string ttl_of(const std::vector<Setting>& settings) {
  const auto ttl = std::ranges::find(settings, "--ttl", &Setting::option);
  return ttl == settings.end() || ttl->value.empty() ? "the TTL" : ttl->value;
}

std::vector<Library> libraries_for(const Descriptor& strategy, const Requirements& requirements) {
  std::vector<Library> libraries = strategy.libraries;
  if (requirements.reentrant && !strategy.traits.reentrant) {
    std::erase_if(libraries, [](const Library& one) { return one.reentry == Reentry::none; });
  }
  return libraries;
}

std::string setup_of(const Library& library, const Answer& answer) {
  const bool has_code = std::ranges::any_of(answer.code, [&](const Code& one) {
    return one.language == library.language || one.language == "any";
  });
  if (has_code) return "";
  return boost::replace_first_copy(std::string(library.settings), "{ttl}",
                                   ttl_of(answer.ranked.front().settings));
}

Answer choose(const Requirements& requirements, const std::vector<const Descriptor*>& catalogue,
              const Evidence& evidence, const Answer* before, const Simulations* simulations) {
  // What was measured under that very load needs no arithmetic.
  const std::optional<Eased> eased = before ? std::nullopt : ease(requirements);
  const Requirements& answered = eased ? eased->requirements : requirements;
  const Question question(answered, evidence, simulations);
  Answer answer{.requirements = requirements,
                .answered = answered,
                .too_busy = eased    ? eased->why
                            : before ? before->too_busy
                                     : "",
                .taken = eased    ? eased->taken
                         : before ? before->taken
                                  : 0,
                .ranked_by = ranking_figure_of(answered),
                .measured_in = question.basis.name,
                .differences = results::each_of(question.others, &Difference::text),
                .assumption = assumption_of(answered, question.asked),
                .left_out = question.basis.left_out};
  std::vector<Candidate> qualifying;
  for (const Descriptor* strategy : catalogue) {
    const Candidate* const known = before ? find_candidate(*before, strategy->name) : nullptr;
    Candidate one = known && !known->qualifies() ? *known : examine(*strategy, question);
    (one.qualifies() ? qualifying : answer.ruled_out).push_back(std::move(one));
  }
  answer.ranked = rank(std::move(qualifying), answer.ranked_by, question);
  for (Candidate& one : answer.ranked) {
    const Candidate* const measured =
        before ? find_candidate(*before, one.strategy->name) : nullptr;
    one.settings = measured ? measured->settings : settings_for(*one.strategy, question);
  }
  for (auto* list : {&answer.ranked, &answer.ruled_out}) {
    for (Candidate& one : *list) {
      const bool in_use = one.strategy->name == requirements.today;
      if (!in_use && &one != answer.ranked.data()) continue;
      one.not_survived = not_survived(*one.strategy, question);
      if (!one.qualifies()) measure(one, answer.ranked_by, question);
    }
  }
  if (answer.ranked.empty()) {
    answer.relaxations = relaxations_of(answer, question);
    return answer;
  }
  const Candidate& best = answer.ranked.front();
  answer.guard = guard_of(*best.strategy);
  answer.code = code_for(*best.strategy, answered, best.settings);
  answer.check = check_command(best, answered);
  answer.not_decided = not_decided(answer, question, before != nullptr);
  if (requirements.is_for(Use::leader)) answer.takeovers = takeovers_of(best, evidence);
  return answer;
}

const Candidate* find_candidate(const Answer& answer, std::string_view strategy) {
  for (const auto* list : {&answer.ranked, &answer.ruled_out}) {
    for (const Candidate& one : *list) {
      if (one.strategy->name == strategy) return &one;
    }
  }
  return nullptr;
}

}  // namespace lockbench::choose
