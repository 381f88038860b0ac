#pragma once

#include "results/file/model.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// A row for each rank of each run; none for runs of one process.
Table rank_table(const Result& result);

}  // namespace lockbench::results
