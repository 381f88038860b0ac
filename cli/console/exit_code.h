#pragma once

#include "results/file/model.h"

namespace lockbench::cli {

/// Scripts rely on these.
namespace exit_code {
inline constexpr int kFine = 0, kUsage = 1, kErrors = 2, kExclusionBroken = 3, kInvalid = 4,
                     kThresholdMissed = 99, kInterrupted = 105;
}  // namespace exit_code

/// The one that applies if several do.
int gravest(int a, int b);

/// What decides the exit code.
struct Ending {
  bool interrupted = false;
  bool exclusion_broken = false;  ///< by a strategy that promises it
  bool rank_lost = false;         ///< one of several
  bool errors = false;            ///< failed or unknown outcomes, runs not started, file not saved
  bool nothing_granted = false;   ///< by one of the runs
  bool invalid = false;
  bool strict = false;  ///< an invalid run has an exit code of its own
  bool threshold_missed = false;
  /// A capacity's planned rate was measured as too high, whatever else went wrong.
  bool planned_too_high = false;
};

/// The first that applies: interrupted, unless that was because a rank was lost, exclusion broken,
/// planned rate too high, errors or nothing granted, invalid, threshold missed.
int exit_code_of(const Ending& ending);

/// From the runs of a result. The caller adds missed thresholds and a failure to save.
Ending ending_of(const results::Result& result);

}  // namespace lockbench::cli
