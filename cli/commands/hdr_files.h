#pragma once

#include <chrono>
#include <string>

#include "cli/console/console.h"
#include "results/file/model.h"

namespace lockbench::cli {

/// Writes one interval log per strategy, STRATEGY.hlog, with an interval per repetition and tag
/// (acquire, hold, release, handoff), and one percentile file per interval, such as
/// STRATEGY.REPETITION.acquire.hgrm. In the log the repetitions follow each other from `begun` on.
/// False, with a message on the console, if a file could not be written to its place.
bool save_hdr_files(const results::Result& result, std::chrono::system_clock::time_point begun,
                    const std::string& directory, Console& console);

}  // namespace lockbench::cli
