#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/file/model.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// An outcome of a hazard: how a cell shows it and how a legend explains it.
struct OutcomeWord {
  std::string_view outcome, shown, meaning;
  Tone tone;              ///< plain: nothing was seen of the lock
  int gravity;            ///< see below
  std::string_view mark;  ///< in Markdown, which has no colors
};

/// All outcomes, the good ones first.
const std::vector<OutcomeWord>& outcome_words();
/// Null if it is unknown.
const OutcomeWord* find_outcome(std::string_view outcome);
/// Doubtful if the word is null.
Tone tone_of(const OutcomeWord* word);

/// Whether the lock failed. A refusal is no failure, nor is a loss that the holder knew of in time;
/// an unknown outcome counts as one.
bool does_harm(std::string_view outcome);
/// 3: exclusion is violated or everybody is blocked for good; 2: work stands still; 1: a refusal,
/// or a loss that the holder knew of in time; 0: no harm.
int gravity(std::string_view outcome);

/// A text of a play's evidence: "reason"; empty if it has none of that name.
std::string evidence_text(const Hazard& cell, const std::string& name);

/// Whether repeated plays ended differently.
bool is_unstable(const Hazard& cell);
/// What follows the outcome in a cell: "!" if it differs from the declared one, "~" if it is
/// unstable, else nothing.
std::string_view outcome_suffix(const Hazard& cell);

}  // namespace lockbench::results
