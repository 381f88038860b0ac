#pragma once

#include <string_view>
#include <vector>

#include "results/file/model.h"

namespace lockbench::results {

/// An outcome as a cell shows it, and as legends explain it.
struct OutcomeWord {
  enum class Kind {
    fine,
    harm,      ///< the protected thing was broken
    standing,  ///< work stands still
    refusal,   ///< no lock rather than a doubtful one: the safe answer, which costs availability
    none,      ///< nothing to be seen here
  };
  std::string_view outcome, shown, meaning;
  Kind kind;
};

/// All that are known, the good ones first.
const std::vector<OutcomeWord>& outcome_words();
/// Null if nobody knows it.
const OutcomeWord* find_outcome(std::string_view outcome);

/// Whether the lock let its users down. A refusal does not; a word that nobody knows may.
bool does_harm(std::string_view outcome);
/// The higher the worse: what breaks exclusion and what blocks everybody for good, what stands
/// still otherwise, a refusal, all else.
int gravity(std::string_view outcome);

/// Whether repeated plays of the cell ended in different ways.
bool is_unstable(const Hazard& cell);
/// What is put behind a cell's word: nothing, "!" if that is not what is declared, "~" if it is not
/// always so.
std::string_view outcome_suffix(const Hazard& cell);

}  // namespace lockbench::results
