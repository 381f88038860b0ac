#include "results/tables/outcomes.h"

#include <algorithm>

namespace lockbench::results {

using OutcomeKind = OutcomeWord::Kind;

const std::vector<OutcomeWord>& outcome_words() {
  static const std::vector<OutcomeWord> words{
      {"safe", "safe", "the fault did no harm", OutcomeKind::fine},
      {"recovers", "back", "the lock recovered without help", OutcomeKind::fine},
      {"double-grant", "double", "two clients held the lock at once", OutcomeKind::harm},
      {"lost-update", "lost", "a stale write reached the protected counter", OutcomeKind::harm},
      {"foreign-release", "freed", "a client released the lock of another", OutcomeKind::harm},
      {"foreign-renewal", "renewed", "a client renewed the lock of another", OutcomeKind::harm},
      {"stuck", "stuck", "no client can acquire the lock any more", OutcomeKind::standing},
      {"self-deadlock", "self", "the holder waits for itself", OutcomeKind::standing},
      {"unavailable", "down", "no client can acquire the lock during the fault",
       OutcomeKind::standing},
      {"refused", "refused", "the strategy grants no lock rather than a doubtful one",
       OutcomeKind::refusal},
      {"known-loss", "knew", "the lock ran out, but its holder knew before another client got it",
       OutcomeKind::loss},
      {"not-applicable", "·", "does not apply to the strategy", OutcomeKind::none},
      {"not-played", "unplayed", "lockbench cannot cause this fault here", OutcomeKind::unplayed},
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
    case OutcomeKind::fine:
      return Tone::good;
    case OutcomeKind::harm:
      return Tone::bad;
    case OutcomeKind::standing:
    case OutcomeKind::refusal:
    case OutcomeKind::loss:
      return Tone::doubtful;
    case OutcomeKind::none:
    case OutcomeKind::unplayed:
      break;
  }
  return Tone::plain;
}

int gravity(std::string_view outcome) {
  const OutcomeWord* const word = find_outcome(outcome);
  if (word == nullptr || word->kind == OutcomeKind::harm || outcome == "stuck") return 3;
  if (word->kind == OutcomeKind::standing) return 2;
  return word->kind == OutcomeKind::refusal || word->kind == OutcomeKind::loss ? 1 : 0;
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
