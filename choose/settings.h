#pragma once

#include <string>
#include <vector>

#include "choose/qualify.h"

namespace lockbench::choose {

/// One option of `lockbench run` and of the lock in production.
struct Setting {
  std::string option, value;  ///< "--ttl", "2400ms"; no value: the default
  std::string because;
  std::string evidence;
};

/// For the strategy under these requirements, from its traits and what was measured. `basis`: the
/// evidence's for these requirements.
std::vector<Setting> settings_for(const Descriptor& strategy, const Requirements& requirements,
                                  const Evidence& evidence, const Evidence::Basis& basis);

/// From the last renewal of a holder that has crashed to the next grant, at most.
Duration longest_blocked(const Traits& traits, Duration ttl);

/// The load that was asked for, and these settings, as options of `lockbench run`.
std::vector<std::string> load_options(const Requirements& requirements);
std::vector<std::string> lock_options(const std::vector<Setting>& settings);

/// The command that checks the settings under the load that was described; plays if the work is so
/// long that a load would measure nothing.
std::string check_command(const Descriptor& strategy, const Requirements& requirements,
                          const std::vector<Setting>& settings);

}  // namespace lockbench::choose
