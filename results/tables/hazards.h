#pragma once

#include "results/file/model.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// One row for each scenario and strategy.
Table hazard_table(const std::vector<Hazard>& hazards);

struct MatrixStyle {
  std::size_t columns = 8;  ///< of one table, without the scenario's
  bool numbered = false;    ///< columns have numbers, explained in a list: names may be too long
};

/// Scenarios by strategies, in tables of a few columns each, and a legend. Strategies of one family
/// with the same outcomes share a column. A scenario that harms none of a table's strategies is
/// named below the table.
std::vector<Block> hazard_blocks(const std::vector<Hazard>& hazards, const MatrixStyle& style);

/// Why each lock failed, a line for each scenario, outcome and reason.
std::vector<Sentence> hazard_failures(const std::vector<Hazard>& hazards);

/// A line for each event.
std::string timeline_text(const std::vector<HazardEvent>& events);
/// One play: its events, outcome and evidence.
std::string explain(const Hazard& hazard);

/// Whether the lock failed. A refusal, or a loss that the holder knew of in time, is not a failure;
/// an unknown outcome is.
bool does_harm(std::string_view outcome);
/// 3: exclusion is violated or everybody is blocked for good; 2: work stops; 1: a refusal, or a
/// loss that the holder knew of in time; 0: no harm.
int gravity(std::string_view outcome);

}  // namespace lockbench::results
