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

using results::human_seconds;

/// A smaller difference in commands does not distinguish two protocols.
constexpr double kSameCommands = 0.25;
/// A strategy this many times as bad as the best of its tier comes last in it: too few runs to show
/// a difference do not mean that there is none.
constexpr double kMuchWorse = 2;

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

/// Five nodes of a quorum, a primary and two replicas, or one server.
int servers_of(const Traits& traits) {
  if (traits.nodes > 1) return 5;
  return traits.needs_replicas ? 3 : 1;
}

std::string drawback_of(const Candidate& one, const Requirements& requirements) {
  const Descriptor& strategy = *one.strategy;
  std::vector<std::string> drawbacks;
  if (one.not_applicable_faults > 0) {
    drawbacks.emplace_back("no play of a fault to survive applies");
  }
  if (!strategy.superseded_by.empty()) {
    drawbacks.push_back(
        fmt::format("superseded by {}: {}", strategy.superseded_by, strategy.superseded_because));
  } else if (strategy.libraries.empty()) {
    drawbacks.emplace_back("no known library");
  }
  if (one.blocks_successors) {
    drawbacks.emplace_back(requirements.is_for(Use::leader)
                               ? "nobody takes over from a frozen leader"
                               : "after a crash, nobody runs the job for a whole TTL");
  }
  return fmt::format("{}", fmt::join(drawbacks, "; "));
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
  one.servers = servers_of(strategy.traits);
  if (const auto commands = results::median_figure(measured.runs, "commands_per_section")) {
    one.commands = commands->value;
  }
  one.hazards = hazards_of(strategy, question);
  one.blocks_successors =
      (requirements.is_for(Use::leader) && blocks_takeover(strategy, question.evidence)) ||
      (is_long_held(requirements) && !lasts(strategy));
  one.drawback = drawback_of(one, requirements);
  if (ranked_by.figure.empty()) return {};
  if (const auto figure = results::median_figure(measured.runs, ranked_by.figure)) {
    one.value = figure->value;
    one.at_least = figure->at_least;
  }
  one.only_invalid_runs = one.value && !measured.valid;
  std::vector<double> values;
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
  if (asked.utilisation() >= 1) {  // the demand exceeds what the lock can serve
    return by("fairness.longest_wait_seconds", "the longest wait of any client");
  }
  if (asked.contended()) return by("acquire.p99", "the wait of an arriving request");
  return by("acquire.p50", "the cost of an uncontended lock");
}

/// The qualifying strategies with their figures, the best first.
std::vector<Candidate> rank(std::vector<Candidate> qualifying, const RankingFigure& ranked_by,
                            const Question& question) {
  std::vector<std::vector<double>> values;
  values.reserve(qualifying.size());
  for (Candidate& one : qualifying) values.push_back(measure(one, ranked_by, question));
  // Without any valid run, all invalid ones are compared: the machine disturbed them alike.
  const bool any_sure = std::ranges::any_of(
      qualifying, [](const Candidate& one) { return one.value && !one.only_invalid_runs; });
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (any_sure && qualifying[i].only_invalid_runs) values[i].clear();
  }
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
    const Descriptor& strategy = *one.strategy;
    const bool superseded_by_practice = !strategy.superseded_by.empty();
    const int faults_that_no_play_shows = one.not_applicable_faults;
    const bool no_known_library = strategy.libraries.empty();
    const bool blocks_successors = one.blocks_successors;
    const bool not_measured = !ranked_by.figure.empty() && one.tier == 0;
    const bool much_worse_than_best = figure(one) > kMuchWorse * best.at(one.tier);
    // A strategy that was not measured counts as sending the most commands.
    const double commands =
        std::round(one.commands.value_or(std::numeric_limits<double>::infinity()) / kSameCommands);
    const std::size_t plays_that_break_it = one.hazards.size();
    return std::tuple(superseded_by_practice, faults_that_no_play_shows, no_known_library,
                      blocks_successors, not_measured, one.tier, much_worse_than_best, one.servers,
                      commands, plays_that_break_it, figure(one), strategy.name);
  };
  std::ranges::sort(qualifying,
                    [&](const Candidate& a, const Candidate& b) { return place(a) < place(b); });
  return qualifying;
}

/// How to make up for a dropped requirement; may be empty.
std::string workaround_for(const std::string& requirement) {
  if (requirement.starts_with("--slo")) return "fewer clients at a lock (--keys), or shorter work";
  if (requirement.starts_with("--rate")) {
    return "more locks for the same work (--keys), more clients if all are busy, shorter work, or "
           "a nearer server";
  }
  if (requirement == "--fair") return "a short --wait interval, so that nobody starves for long";
  const auto space = requirement.find(' ');
  if (space == std::string::npos) return "";
  const auto survival = find_survival(requirement.substr(space + 1));
  return survival ? survival->workaround : "";
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
      std::string workaround = workaround_for(requirement);
      if (!workaround.empty()) one.instead.push_back(std::move(workaround));
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
      "another client leads after up to " +
      (ttl ? format_duration(longest_blocked(strategy.traits, *ttl)) : "the TTL");
  const std::string twice =
      after_ttl + "; the old leader may act until it notices: fence its writes";
  const std::string known =
      after_ttl + "; the old leader knows in time if it looks at its lease: else fence its writes";
  const bool knows =
      evidence.report("partition-holder", strategy).outcome == to_string(HazardOutcome::known_loss);
  add("a crash", "crash-holding",
      by_connection ? "another client leads as soon as the connection closes" : after_ttl);
  add("the death of its host", by_connection ? "host-crash-keepalive" : "host-crash",
      by_connection ? "another client leads when the keepalives fail" : after_ttl);
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

/// Consequences of the requirements that no lock can change.
std::vector<std::string> observations_of(const Requirements& requirements, const Load& asked) {
  if (!asked.work || !requirements.clients || !requirements.is_for(Use::mutex)) return {};
  const auto sharing = static_cast<int>(asked.clients.value_or(1));
  if (sharing < 2 || asked.shared) return {};
  const int others = sharing - 1;
  const double rtt = asked.rtt.value_or(0);
  const std::string turn =
      rtt > 0 ? fmt::format("({} + {})", human_seconds(*asked.work), human_seconds(rtt))
              : human_seconds(*asked.work);
  return {
      fmt::format("if all {} clients of a lock want it at the same time, the last waits about {} "
                  "({} × {}) with "
                  "any strategy",
                  sharing, human_seconds(others * (*asked.work + rtt)), others, turn)};
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

const Candidate* find(const std::vector<Candidate>& list, const Descriptor* strategy) {
  const auto found = std::ranges::find(list, strategy, &Candidate::strategy);
  return found == list.end() ? nullptr : &*found;
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

std::string setup_of(const Library& library, const std::vector<Setting>& settings) {
  return boost::replace_first_copy(std::string(library.settings), "{ttl}", ttl_of(settings));
}

Answer choose(const Requirements& requirements, const std::vector<const Descriptor*>& catalogue,
              const Evidence& evidence, const Answer* before) {
  const Question question(requirements, evidence);
  Answer answer{.requirements = requirements,
                .ranked_by = ranking_figure_of(requirements),
                .measured_in = question.basis.name,
                .assumption = assumption_of(requirements, question.asked),
                .left_out = question.basis.left_out,
                .observations = observations_of(requirements, question.asked)};
  for (const Difference& one : question.others) answer.differences.push_back(one.text);
  std::vector<Candidate> qualifying;
  for (const Descriptor* strategy : catalogue) {
    const Candidate* const out = before ? find(before->ruled_out, strategy) : nullptr;
    Candidate one = out ? *out : examine(*strategy, question);
    (one.qualifies() ? qualifying : answer.ruled_out).push_back(std::move(one));
  }
  answer.ranked = rank(std::move(qualifying), answer.ranked_by, question);
  for (Candidate& one : answer.ranked) {
    const Candidate* const measured = before ? find(before->ranked, one.strategy) : nullptr;
    one.settings = measured ? measured->settings : settings_for(*one.strategy, question);
  }
  if (answer.ranked.empty()) {
    answer.relaxations = relaxations_of(answer, question);
    return answer;
  }
  const Candidate& best = answer.ranked.front();
  answer.guard = guard_of(*best.strategy);
  answer.check = check_command(best, requirements);
  if (requirements.is_for(Use::leader)) answer.takeovers = takeovers_of(best, evidence);
  return answer;
}

}  // namespace lockbench::choose
