#pragma once

#include "results/file/model.h"

namespace lockbench::cli {

/// What scripts rely on.
namespace exit_code {
inline constexpr int kFine = 0, kUsage = 1, kErrors = 2, kExclusionBroken = 3, kInvalid = 4,
                     kThresholdMissed = 99, kInterrupted = 105;
}  // namespace exit_code

/// How a run of lockbench ended, as far as the exit code is concerned.
struct Ending {
  bool interrupted = false;
  bool exclusion_broken = false;  ///< by a strategy that promises it
  bool errors = false;            ///< failed or unknown outcomes, runs not started, file not saved
  bool invalid = false;
  bool strict = false;  ///< an invalid run matters
  bool threshold_missed = false;
};

/// Where several apply: interrupted, exclusion broken, errors, invalid, threshold missed.
int exit_code_of(const Ending& ending);

/// What a finished run says of itself; knows neither thresholds nor whether it could be saved.
Ending ending_of(const results::Result& result);

}  // namespace lockbench::cli
