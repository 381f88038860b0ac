#include "results/tables/hazard_words.h"

#include <algorithm>

namespace lockbench::results {

using Kind = OutcomeWord::Kind;

const std::vector<OutcomeWord>& outcome_words() {
  static const std::vector<OutcomeWord> words{
      {"safe", "safe", "what the scenario asks about did not happen", Kind::fine},
      {"recovers", "back", "the lock came back by itself", Kind::fine},
      {"double-grant", "double", "two held it at once", Kind::harm},
      {"lost-update", "lost", "a stale write reached the protected counter", Kind::harm},
      {"foreign-release", "freed", "a release freed another's lock", Kind::harm},
      {"foreign-renewal", "renewed", "a renewal prolonged another's lock", Kind::harm},
      {"stuck", "stuck", "nobody gets the lock any more", Kind::standing},
      {"self-deadlock", "self", "its holder waits for itself", Kind::standing},
      {"unavailable", "down", "nobody can lock", Kind::standing},
      {"refused", "refused", "no lock rather than a doubtful one", Kind::refusal},
      {"not-applicable", "·", "does not concern it", Kind::none},
  };
  return words;
}

const OutcomeWord* find_outcome(std::string_view outcome) {
  const auto& words = outcome_words();
  const auto found = std::find_if(words.begin(), words.end(),
                                  [&](const OutcomeWord& word) { return word.outcome == outcome; });
  return found == words.end() ? nullptr : &*found;
}

int gravity(std::string_view outcome) {
  const OutcomeWord* const word = find_outcome(outcome);
  if (word == nullptr || word->kind == Kind::harm || outcome == "stuck") return 3;
  if (word->kind == Kind::standing) return 2;
  return word->kind == Kind::refusal ? 1 : 0;
}

bool does_harm(std::string_view outcome) { return gravity(outcome) > gravity("refused"); }

bool is_unstable(const Hazard& cell) {
  const auto found = cell.evidence.find("unstable");
  const auto* unstable = found == cell.evidence.end() ? nullptr : std::get_if<bool>(&found->second);
  return unstable != nullptr && *unstable;
}

std::string_view outcome_suffix(const Hazard& cell) {
  if (is_unstable(cell)) return "~";
  return cell.agrees ? "" : "!";
}

}  // namespace lockbench::results
