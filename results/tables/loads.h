#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/file/model.h"
#include "results/stats/load_figures.h"
#include "results/tables/runs.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// For a result of several loads: a table for each name, with what that load decides. One row for
/// each strategy, by store; what is superseded comes last, marked as old.
std::vector<Block> load_tables(const Result& result, const KnownFlaws& flaws);

/// "≥ 1.4 s" of a lower bound.
Cell cell_of(const std::optional<LoadFigure>& figure);

/// The worst verdict of these runs.
Cell verdict_cell(const std::vector<const Run*>& runs);

/// What follows from the figures, in plain sentences: what is safe, what is cheapest, what is
/// fairest, what to avoid and why, and what to run next. Nothing that is superseded is recommended.
/// A sentence whose load is not in the result is left out.
std::vector<std::string> conclusions(const Result& result, const KnownFlaws& flaws);

}  // namespace lockbench::results
