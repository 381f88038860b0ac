#include "choose/answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "results/tables/text.h"

namespace lockbench::choose {
namespace {

using results::human_seconds;

/// What makes up for a requirement that is dropped; may be empty.
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
  // By all that stands in the way, if that is only what the user asked for.
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
      after_ttl + "; the old leader knows before, if it looks at its lease: else fence its writes";
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

/// What rejects a write that comes after another client's grant.
std::string guard_of(const Descriptor& strategy) {
  const std::string by_version =
      "UPDATE t SET ..., version = version + 1 WHERE id = :id AND version = :seen; no row changed: "
      "somebody has written, so read again";
  if (!strategy.traits.fencing) return by_version + " (this lock has no fencing numbers)";
  return "UPDATE t SET ..., fence = :number WHERE id = :id AND fence <= :number; no row changed: a "
         "later holder has written, so stop (:number is the grant's fencing number; if your "
         "library gives none: " +
         by_version + ")";
}

/// What no lock can change.
std::vector<std::string> observations_of(const Requirements& requirements, const Load& asked) {
  if (!asked.work || !requirements.clients || !requirements.is_for(Use::mutex)) return {};
  const auto sharing = static_cast<int>(asked.clients.value_or(1));
  if (sharing < 2 || asked.shared) return {};
  const int others = sharing - 1;
  const double rtt = asked.rtt.value_or(0);
  const std::string turn =
      rtt > 0 ? fmt::format("({} + {})", human_seconds(*asked.work), human_seconds(rtt))
              : human_seconds(*asked.work);
  return {fmt::format(
      "if all {} clients of a lock want it at once, the last waits about {} ({} × {}) with any "
      "strategy",
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
