#pragma once

#include "results/file/model.h"
#include "results/stats/comparison.h"

namespace lockbench::results {

// What a command has judged, as CI servers read it.

/// A threshold, a gate, the audit of a run, or a hazard's play.
struct Check {
  enum class Outcome { passed, failed, undecided, skipped };
  std::string group, name;  ///< what was judged, and by what
  Outcome outcome = Outcome::passed;
  std::string why{};  ///< in one line, unless it passed
};

/// The audit of each run, each play of a hazard, and what was skipped.
std::vector<Check> checks_of(const Result& result);
/// Each gate; `strict`: a regression that cannot be excluded fails it.
std::vector<Check> checks_of(const ResultComparison& comparison, bool strict);

/// JUnit's XML, one suite: a failed check is a failure, an undecided one an error.
std::string to_junit(std::string_view suite, const std::vector<Check>& checks);

}  // namespace lockbench::results
