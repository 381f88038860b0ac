#pragma once

#include <chrono>
#include <string>
#include <tl/expected.hpp>

#include "cli/console/console.h"
#include "results/file/model.h"

namespace lockbench::cli {

/// Whether HdrHistogram's files can be written into the directory, which is made if it is not
/// there. The error is one line.
tl::expected<void, std::string> check_hdr_directory(const std::string& directory);

/// For each strategy one interval log with an interval for each repetition and each of acquire,
/// hold, release and handoff (the intervals' tags), and for each of these a percentile output:
/// STRATEGY.hlog and STRATEGY.REPETITION.acquire.hgrm. Repetitions stand end to end from `begun`
/// on. False if not all are where they were to be, which the console is told.
bool save_hdr_files(const results::Result& result, std::chrono::system_clock::time_point begun,
                    const std::string& directory, Console& console);

}  // namespace lockbench::cli
