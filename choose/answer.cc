#include "choose/answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "choose/survival.h"
#include "results/tables/units.h"

namespace lockbench::choose {
namespace {

using results::human_seconds;

/// What stands in its way; nothing if that is not only what the user asked for.
std::set<std::string> obstacles_of(const Candidate& candidate) {
  std::set<std::string> obstacles;
  for (const Reason& reason : candidate.against) {
    if (reason.requirement.empty()) return {};
    obstacles.insert(reason.requirement);
  }
  return obstacles;
}

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

std::vector<Relaxation> relaxations_of(const Answer& answer, const Evidence& evidence,
                                       const Evidence::Basis& basis) {
  std::map<std::set<std::string>, std::vector<Candidate>> groups;
  std::size_t fewest = SIZE_MAX;
  for (const Candidate& candidate : answer.candidates) {
    const std::set<std::string> obstacles = obstacles_of(candidate);
    if (obstacles.empty()) continue;
    fewest = std::min(fewest, obstacles.size());
    Candidate& freed = groups[obstacles].emplace_back(candidate);
    freed.against.clear();
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
    for (const Ranked& ranked :
         rank(freed, answer.ranked_by, answer.requirements, evidence, basis)) {
      one.strategies.emplace_back(ranked.candidate->strategy->name);
    }
  }
  return relaxations;
}

std::string ttl_of(const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    if (setting.option == "--ttl" && !setting.value.empty()) return setting.value;
  }
  return "the TTL";
}

std::vector<Takeover> takeovers_of(const Descriptor& strategy, const std::vector<Setting>& settings,
                                   const Evidence& evidence) {
  const auto ttl = parse_duration(ttl_of(settings));
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
      strategy.traits.ends_with_connection ? "another client leads as soon as the connection closes"
                                           : after_ttl);
  if (strategy.traits.ends_with_connection) {
    add("the death of its host", "host-crash-keepalive",
        "another client leads when the keepalives fail");
  } else {
    add("the death of its host", "host-crash", after_ttl);
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
std::vector<std::string> observations_of(const Requirements& requirements) {
  const Load asked = asked_load(requirements);
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

/// Null if it qualified.
const Candidate* ruled_out(const Answer& before, const Descriptor& strategy) {
  const auto found = std::find_if(before.candidates.begin(), before.candidates.end(),
                                  [&](const Candidate& one) { return one.strategy == &strategy; });
  return found == before.candidates.end() || found->qualifies() ? nullptr : &*found;
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

}  // namespace

std::vector<NamedLibrary> libraries_of(const Answer& answer) {
  std::vector<NamedLibrary> libraries;
  if (answer.ranked.empty()) return libraries;
  const std::string ttl = ttl_of(answer.settings);
  constexpr std::string_view kTtl = "{ttl}";
  for (const Library& library : answer.ranked.front().candidate->strategy->libraries) {
    std::string settings(library.settings);
    if (const auto at = settings.find(kTtl); at != std::string::npos) {
      settings.replace(at, kTtl.size(), ttl);
    }
    libraries.push_back({library.language, library.name, std::move(settings)});
  }
  return libraries;
}

void recommend(Answer& answer, std::vector<Setting> settings, const Evidence& evidence) {
  const Descriptor& best = *answer.ranked.front().candidate->strategy;
  answer.settings = std::move(settings);
  answer.check = check_command(best, answer.requirements, answer.settings);
  if (answer.requirements.is_for(Use::leader)) {
    answer.takeovers = takeovers_of(best, answer.settings, evidence);
  }
}

Answer choose(const Requirements& requirements, const std::vector<const Descriptor*>& catalogue,
              const Evidence& evidence, const Answer* before) {
  Answer answer;
  answer.requirements = requirements;
  const auto basis = evidence.basis_for(requirements);
  for (const Descriptor* strategy : catalogue) {
    const Candidate* const out = before == nullptr ? nullptr : ruled_out(*before, *strategy);
    answer.candidates.push_back(out ? *out : examine(*strategy, requirements, evidence, basis));
  }
  const Load asked = asked_load(requirements);
  answer.ranked_by = ranking_figure_of(requirements);
  answer.observations = observations_of(requirements);
  answer.ranked = rank(answer.candidates, answer.ranked_by, requirements, evidence, basis);
  answer.measured_in = basis.name;
  answer.assumption = assumption_of(requirements, asked);
  answer.left_out = basis.left_out;
  if (!basis.sources.empty()) {
    for (Difference& one : differences(asked, basis.load)) {
      answer.differences.push_back(std::move(one.text));
    }
  }
  if (answer.ranked.empty()) {
    answer.relaxations = relaxations_of(answer, evidence, basis);
    return answer;
  }
  const Descriptor& best = *answer.ranked.front().candidate->strategy;
  answer.guard = guard_of(best);
  recommend(answer, settings_for(best, requirements, evidence, basis), evidence);
  return answer;
}

}  // namespace lockbench::choose
