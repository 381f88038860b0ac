#pragma once

#include <string>

#include "cli/console/console.h"
#include "results/file/model.h"

namespace lockbench::cli {

/// Writes one percentile file for each run and time (acquire, hold, release, handoff), such as
/// STRATEGY.REPETITION.acquire.hgrm. False, with a message on the console, if a file could not be
/// written to its place.
bool save_hdr_files(const results::Result& result, const std::string& directory, Console& console);

}  // namespace lockbench::cli
