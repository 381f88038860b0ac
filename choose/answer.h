#pragma once

#include <string>
#include <vector>

#include "choose/rank.h"
#include "choose/settings.h"

namespace lockbench::choose {

/// Dropping these requirements, as few as possible, would let these strategies in.
struct Relaxation {
  std::vector<std::string> requirements, strategies;  ///< the best strategy first
  std::vector<std::string> instead;                   ///< what makes up for them
};

/// What happens when a leader is gone.
struct Takeover {
  std::string after, text, evidence;
};

/// A function of descriptors and results: it knows no strategy by name.
struct Answer {
  Requirements requirements;
  std::vector<Candidate> candidates;  ///< all that were looked at
  RankingFigure ranked_by;
  std::string measured_in;                ///< files and load of the figures; empty: none
  std::vector<std::string> differences;   ///< of that load from the one asked for
  std::string assumption;                 ///< about the load, where nothing was said; may be empty
  std::vector<std::string> left_out;      ///< files whose figures do not compare with those
  std::vector<Ranked> ranked;             ///< best first; they refer to `candidates`
  std::vector<Setting> settings;          ///< of the best
  std::string check;                      ///< the command that tries it under the load asked for
  std::vector<Takeover> takeovers;        ///< --for leader: of the best
  std::string guard;                      ///< in the protected resource, against late writes
  std::vector<Relaxation> relaxations;    ///< where nothing qualifies
  std::vector<std::string> observations;  ///< what the requirements alone say, a line each

  Answer() = default;
  Answer(Answer&&) = default;
  Answer& operator=(Answer&&) = default;
};

/// What implements the best, with the recommended settings in their names.
struct NamedLibrary {
  std::string_view language, name;
  std::string settings;
};
std::vector<NamedLibrary> libraries_of(const Answer& answer);

/// Recommends the best with these settings, and what follows from them.
void recommend(Answer& answer, std::vector<Setting> settings, const Evidence& evidence);

/// `before`: the answer with which a race began. What was ruled out then stays so.
Answer choose(const Requirements& requirements, const std::vector<const Descriptor*>& catalogue,
              const Evidence& evidence, const Answer* before = nullptr);

}  // namespace lockbench::choose
