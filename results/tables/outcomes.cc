#include "results/tables/outcomes.h"

#include <algorithm>

namespace lockbench::results {

using Kind = OutcomeWord::Kind;

const std::vector<OutcomeWord>& outcome_words() {
  static const std::vector<OutcomeWord> words{
      {"safe", "safe", "the fault did no harm", Kind::fine},
      {"recovers", "back", "the lock recovered without help", Kind::fine},
      {"double-grant", "double", "two clients held the lock at once", Kind::harm},
      {"lost-update", "lost", "a stale write reached the protected counter", Kind::harm},
      {"foreign-release", "freed", "a client released the lock of another", Kind::harm},
      {"foreign-renewal", "renewed", "a client renewed the lock of another", Kind::harm},
      {"stuck", "stuck", "no client can acquire the lock any more", Kind::standing},
      {"self-deadlock", "self", "the holder waits for itself", Kind::standing},
      {"unavailable", "down", "no client can acquire the lock during the fault", Kind::standing},
      {"refused", "refused", "the strategy grants no lock rather than a doubtful one",
       Kind::refusal},
      {"not-applicable", "·", "does not apply to the strategy", Kind::none},
  };
  return words;
}

const OutcomeWord* find_outcome(std::string_view outcome) {
  const auto& words = outcome_words();
  const auto found = std::find_if(words.begin(), words.end(),
                                  [&](const OutcomeWord& word) { return word.outcome == outcome; });
  return found == words.end() ? nullptr : &*found;
}

Tone tone_of(const OutcomeWord* word) {
  if (word == nullptr) return Tone::doubtful;
  switch (word->kind) {
    case Kind::fine:
      return Tone::good;
    case Kind::harm:
      return Tone::bad;
    case Kind::standing:
    case Kind::refusal:
      return Tone::doubtful;
    case Kind::none:
      break;
  }
  return Tone::plain;
}

int gravity(std::string_view outcome) {
  const OutcomeWord* const word = find_outcome(outcome);
  if (word == nullptr || word->kind == Kind::harm || outcome == "stuck") return 3;
  if (word->kind == Kind::standing) return 2;
  return word->kind == Kind::refusal ? 1 : 0;
}

bool does_harm(std::string_view outcome) { return gravity(outcome) > gravity("refused"); }

std::string evidence_text(const Hazard& cell, const std::string& name) {
  const auto found = cell.evidence.find(name);
  const auto* text =
      found == cell.evidence.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

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
