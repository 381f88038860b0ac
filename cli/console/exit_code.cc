#include "cli/console/exit_code.h"

#include <algorithm>

#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

// An unknown strategy is expected to promise exclusion.
bool promises_exclusion(const results::Run& run) {
  const Descriptor* strategy = find_strategy(run.strategy);
  return strategy == nullptr || strategy->traits.promises_exclusion;
}

bool had_errors(const results::Run& run) {
  // A counter that could not be read is an error, though no outcome shows it.
  const bool wrote = run.sections > run.shared_sections;
  const bool unaudited = wrote && run.audit.verdict == results::Verdict::unaudited;
  // With --fault, failed operations are expected.
  if (!run.faults.empty()) return run.audit.resource_failures > 0 || unaudited;
  return !run.errors.empty() || run.outcomes.failed > 0 || run.outcomes.unknown > 0 ||
         run.releases_failed > 0 || run.audit.resource_failures > 0 || unaudited;
}

}  // namespace

int gravest(int a, int b) {
  using namespace exit_code;
  for (const int code : {kInterrupted, kExclusionBroken, kErrors, kInvalid, kThresholdMissed}) {
    if (a == code || b == code) return code;
  }
  return std::max(a, b);
}

int exit_code_of(const Ending& ending) {
  if (ending.interrupted && !ending.rank_lost) return exit_code::kInterrupted;
  if (ending.exclusion_broken) return exit_code::kExclusionBroken;
  if (ending.planned_too_high) return exit_code::kThresholdMissed;
  if (ending.errors || ending.rank_lost || ending.nothing_granted) return exit_code::kErrors;
  if (ending.invalid && ending.strict) return exit_code::kInvalid;
  if (ending.threshold_missed) return exit_code::kThresholdMissed;
  return exit_code::kFine;
}

Ending ending_of(const results::Result& result) {
  Ending ending{.interrupted = result.interrupted, .rank_lost = result.exit_code.has_value()};
  for (const results::Run& run : result.runs) {
    if (run.audit.verdict == results::Verdict::violated && promises_exclusion(run)) {
      ending.exclusion_broken = true;
    }
    ending.errors |= had_errors(run);
    ending.nothing_granted |= run.outcomes.acquired == 0;
    ending.invalid |= !run.generator.valid;
  }
  return ending;
}

}  // namespace lockbench::cli
