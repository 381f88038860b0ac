#pragma once

#include <string>
#include <vector>

#include "choose/evidence.h"
#include "choose/requirements.h"
#include "strategies/descriptor.h"

namespace lockbench::choose {

/// One sentence of the answer, with where it can be checked.
struct Reason {
  std::string requirement;  ///< as an option: "--survive pause"; empty: none of the user's
  std::string text;
  std::string evidence;
  std::string detail{};  ///< what was observed; may be empty
};

struct Candidate {
  const Descriptor* strategy = nullptr;
  std::vector<Reason> against;     ///< what rules it out; empty: it qualifies
  std::vector<Reason> in_favour;   ///< how it meets what was asked
  std::vector<Reason> conditions;  ///< on which it qualifies, and what is not shown yet
  int not_applicable_faults = 0;   ///< faults to survive of which no play applies to it

  bool qualifies() const { return against.empty(); }
};

/// Checks the strategy against every requirement. `basis`: the evidence's for these requirements.
Candidate examine(const Descriptor& strategy, const Requirements& requirements,
                  const Evidence& evidence, const Evidence::Basis& basis);

/// The requirement of the reasons that are about this objective.
std::string option_of(const results::Threshold& slo);

/// Whether a fixed TTL would block the lock for minutes after a crash, or nobody knows how long it
/// must be.
bool is_long_held(const Requirements& requirements);

/// Whether it lasts as long as its holder.
bool lasts(const Descriptor& strategy);

/// "seen in FILE: lockbench hazards --explain SCENARIO/STRATEGY".
std::string where_shown(const FaultReport& report, const Descriptor& strategy);

}  // namespace lockbench::choose
