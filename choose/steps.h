#pragma once

#include <string>
#include <vector>

#include "choose/answer.h"

namespace lockbench::choose {

// The steps to an answer, in the order of choose/README.md.

/// What is asked, and what can answer it. Made once for each answer; refers to both arguments.
struct Question {
  Question(const Requirements& wanted, const Evidence& known)
      : requirements(wanted),
        evidence(known),
        basis(known.basis_for(wanted)),
        asked(asked_load(wanted)),
        others(basis.sources.empty() ? std::vector<Difference>{} : differences(asked, basis.load)) {
  }

  const Requirements& requirements;
  const Evidence& evidence;
  const Evidence::Basis basis;
  const Load asked;
  const std::vector<Difference> others;  ///< of the measured load from `asked`
};

/// Checks the strategy against every requirement.
Candidate examine(const Descriptor& strategy, const Question& question);

/// The requirement of the reasons that are about this objective.
std::string option_of(const results::Threshold& slo);

/// Whether a fixed TTL would block the lock for minutes after a crash, or nobody knows how long it
/// must be.
bool is_long_held(const Requirements& requirements);

/// Whether it lasts as long as its holder.
bool lasts(const Descriptor& strategy);

/// "seen in FILE; lockbench hazards --explain SCENARIO/STRATEGY".
std::string where_shown(const FaultReport& report, const Descriptor& strategy);

RankingFigure ranking_figure_of(const Requirements& requirements);

/// Whether nobody can take over while a holder is frozen.
bool blocks_takeover(const Descriptor& strategy, const Evidence& evidence);

/// The strategies, which qualify, with their figures and the best first.
std::vector<Candidate> rank(std::vector<Candidate> qualifying, const RankingFigure& ranked_by,
                            const Question& question);

/// For the strategy under these requirements, from its traits and what was measured.
std::vector<Setting> settings_for(const Descriptor& strategy, const Question& question);

/// From the last renewal of a holder that has crashed to the next grant, at most.
Duration longest_blocked(const Traits& traits, Duration ttl);

/// The command that checks the settings under the load that was described; plays if the work is so
/// long that a load would measure nothing.
std::string check_command(const Candidate& best, const Requirements& requirements);

}  // namespace lockbench::choose
