#pragma once

#include <vector>

#include "results/file/model.h"
#include "results/tables/runs.h"

namespace lockbench::results {

/// What follows from a result's figures, in a sentence each; violations come first.
std::vector<Sentence> advice(const Result& result, const KnownFlaws& flaws);

/// What to know about a result besides its figures, one line each: interrupted, invalid runs and
/// why, faults, failures, skipped strategies, how repetitions were merged.
std::vector<Sentence> notes(const Result& result);

}  // namespace lockbench::results
