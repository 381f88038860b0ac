#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "choose/answer.h"
#include "cli/commands/choose.h"
#include "cli/console/publish.h"
#include "cli/console/session.h"

namespace lockbench::cli {

/// What `choose --measure` measured, and the settings that each strategy had.
struct Race {
  results::Result result;
  std::map<std::string, std::vector<choose::Setting>, std::less<>> settings;
  std::set<std::string, std::less<>> dropped;  ///< not of the first tier
  bool errors = false;                         ///< a strategy did not start
};

/// Runs the strategies that qualify in rounds, each with the settings that it would be recommended
/// with, under the load that was asked for. Each runs once at least; hopeless ones are dropped
/// early. Ends when the first tier is settled, after --measure-time, or at a stop. Keeps `result`,
/// to which the runs are added, in the file after each of them. Nothing if a stop came before the
/// load.
std::optional<Race> measure_candidates(const ChooseOptions& options, const choose::Answer& answer,
                                       const choose::Evidence& evidence, results::Result result,
                                       ResultFile& file, Session& session);

}  // namespace lockbench::cli
