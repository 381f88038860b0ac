#include "results/tables/outcomes.h"

#include <algorithm>

namespace lockbench::results {

const std::vector<OutcomeWord>& outcome_words() {
  static const std::vector<OutcomeWord> words{
      {"safe", "safe", "the fault did no harm", Tone::good, 0, "✓"},
      {"recovers", "back", "the lock recovered without help", Tone::good, 0, "✓"},
      {"double-grant", "double", "two clients held the lock at once", Tone::bad, 3, "✗"},
      {"lost-update", "lost", "a stale write reached the protected counter", Tone::bad, 3, "✗"},
      {"foreign-release", "freed", "a client released the lock of another", Tone::bad, 3, "✗"},
      {"foreign-renewal", "renewed", "a client renewed the lock of another", Tone::bad, 3, "✗"},
      {"stuck", "stuck", "no client can acquire the lock any more", Tone::doubtful, 3, "■"},
      {"self-deadlock", "self", "the holder waits for itself", Tone::doubtful, 2, "■"},
      {"unavailable", "down", "no client can acquire the lock during the fault", Tone::doubtful, 2,
       "■"},
      {"refused", "refused", "the strategy grants no lock rather than a doubtful one",
       Tone::doubtful, 1, "■"},
      {"known-loss", "knew", "the lock ran out, but its holder knew before another client got it",
       Tone::doubtful, 1, "○"},
      {"not-applicable", "·", "does not apply to the strategy", Tone::plain, 0, "·"},
      {"not-played", "unplayed", "lockbench cannot cause this fault here", Tone::plain, 0, "–"},
  };
  return words;
}

const OutcomeWord* find_outcome(std::string_view outcome) {
  const auto& words = outcome_words();
  const auto found = std::find_if(words.begin(), words.end(),
                                  [&](const OutcomeWord& word) { return word.outcome == outcome; });
  return found == words.end() ? nullptr : &*found;
}

Tone tone_of(const OutcomeWord* word) { return word == nullptr ? Tone::doubtful : word->tone; }

int gravity(std::string_view outcome) {
  const OutcomeWord* const word = find_outcome(outcome);
  return word == nullptr ? 3 : word->gravity;
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
