#pragma once

#include <string>
#include <vector>

#include "choose/rank.h"
#include "choose/settings.h"

namespace lockbench::choose {

/// Dropping this one requirement would let these strategies in.
struct Concession {
  std::string requirement;
  std::vector<std::string> strategies;
};

/// A function of descriptors and results: it knows no strategy by name.
struct Answer {
  Requirements requirements;
  std::vector<Candidate> candidates;  ///< all that were looked at
  Yardstick yardstick;
  std::string measured_in;                ///< files and load of the figures; empty: none
  std::vector<std::string> left_out;      ///< files whose figures do not compare with those
  std::vector<Ranked> ranked;             ///< best first; they refer to `candidates`
  std::vector<Setting> settings;          ///< of the best
  std::string check;                      ///< the command that tries it under the load asked for
  std::vector<Concession> concessions;    ///< where nothing qualifies
  std::vector<std::string> observations;  ///< what the requirements alone say, a line each

  Answer() = default;
  Answer(Answer&&) = default;
  Answer& operator=(Answer&&) = default;
};

Answer choose(const Requirements& requirements, const std::vector<const Descriptor*>& catalogue,
              const Evidence& evidence);

}  // namespace lockbench::choose
