#pragma once

#include <map>
#include <string>
#include <vector>

#include "results/file/model.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// What is known of a strategy without measuring it.
struct KnownFlaw {
  std::string hazard;           ///< the gravest that is known to break it; empty: none does harm
  std::string superseded_by{};  ///< the strategy that replaces it in practice; empty: none does
};

/// By strategy. The caller brings it: results knows no strategies.
using KnownFlaws = std::map<std::string, KnownFlaw, std::less<>>;

/// One row for each strategy, in the order of their first runs: repetitions are merged.
Table run_table(const Result& result, const KnownFlaws& flaws);
/// One row for each run.
Table table_of_each_run(const Result& result, const KnownFlaws& flaws);

/// A row for each rank of each run; none for runs of one process.
Table rank_table(const Result& result);

}  // namespace lockbench::results
