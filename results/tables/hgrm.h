#pragma once

#include "results/file/model.h"

namespace lockbench::results {

/// Percentile output of HdrHistogram (https://github.com/HdrHistogram/HdrHistogram), `.hgrm`, which
/// its plotters read: five lines for each halving of the distance to 100 %, in µs. A value is the
/// upper end of its bucket, which is too high by at most twice the distribution's relative error.
std::string to_hgrm(const Distribution& distribution);

/// One for each run and time (acquire, hold, release, handoff), by the names of their files:
/// STRATEGY.REPETITION.acquire.hgrm.
std::map<std::string, std::string> hgrm_files(const Result& result);

}  // namespace lockbench::results
