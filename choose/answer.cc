#include "choose/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "results/tables/units.h"

namespace lockbench::choose {
namespace {

using results::human_seconds;

/// The requirement that alone stands in its way; empty if it is none of the user's, or several.
std::string only_obstacle(const Candidate& candidate) {
  if (candidate.against.empty()) return "";
  const std::string& first = candidate.against.front().requirement;
  const bool alone = std::all_of(candidate.against.begin(), candidate.against.end(),
                                 [&](const Reason& one) { return one.requirement == first; });
  return alone ? first : "";
}

std::vector<Concession> concessions_of(const std::vector<Candidate>& candidates) {
  std::map<std::string, std::vector<std::string>> by_requirement;
  for (const Candidate& candidate : candidates) {
    const std::string obstacle = only_obstacle(candidate);
    if (!obstacle.empty()) by_requirement[obstacle].emplace_back(candidate.strategy->name);
  }
  std::vector<Concession> concessions;
  concessions.reserve(by_requirement.size());
  for (auto& [requirement, strategies] : by_requirement) {
    concessions.push_back({requirement, std::move(strategies)});
  }
  return concessions;
}

/// What no lock can change.
std::vector<std::string> observations_of(const Requirements& requirements) {
  const auto work = requirements.work_p50 ? requirements.work_p50 : requirements.work_p99;
  if (!work || requirements.clients.value_or(1) <= 1) return {};
  const int others = *requirements.clients - 1;
  return {fmt::format(
      "if all {} clients want one lock at once, the last waits about {} ({} × {}) with any "
      "strategy",
      *requirements.clients, human_seconds(others * seconds(*work)), others,
      human_seconds(seconds(*work)))};
}

}  // namespace

Answer choose(const Requirements& requirements, const std::vector<const Descriptor*>& catalogue,
              const Evidence& evidence) {
  Answer answer;
  answer.requirements = requirements;
  for (const Descriptor* strategy : catalogue) {
    answer.candidates.push_back(examine(*strategy, requirements, evidence));
  }
  const auto basis = evidence.basis_for(requirements);
  const bool measured = !basis.sources.empty();
  answer.yardstick =
      yardstick_of(requirements, measured ? std::optional(basis.load) : std::nullopt);
  answer.observations = observations_of(requirements);
  answer.ranked = rank(answer.candidates, answer.yardstick, requirements, evidence);
  answer.measured_in = basis.name;
  answer.left_out = basis.left_out;
  if (answer.ranked.empty()) {
    answer.concessions = concessions_of(answer.candidates);
    return answer;
  }
  const Descriptor& best = *answer.ranked.front().candidate->strategy;
  answer.settings = settings_for(best, requirements, evidence);
  answer.check = check_command(best, requirements, answer.settings);
  return answer;
}

}  // namespace lockbench::choose
