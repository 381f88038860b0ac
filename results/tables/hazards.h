#pragma once

#include <string>
#include <vector>

#include "results/file/model.h"
#include "results/tables/formats.h"

namespace lockbench::results {

/// The names in the order in which they first occur.
std::vector<std::string> scenarios_of(const std::vector<Hazard>& hazards);
std::vector<std::string> strategies_of(const std::vector<Hazard>& hazards);

/// One row for each scenario and strategy.
Table hazard_table(const std::vector<Hazard>& hazards);

/// For a terminal: scenarios by strategies, one word for each outcome, split into blocks that fit
/// the width; a legend; then why each lock failed.
std::string hazard_text(const std::vector<Hazard>& hazards, const TextStyle& style);
/// For a page: tables of a few columns each. Strategies of one family with the same outcomes share
/// a column, a scenario that harms none of a table's strategies is named below it.
std::string hazard_markdown(const std::vector<Hazard>& hazards);

/// One play: its events, outcome and evidence.
std::string explain(const Hazard& hazard);

}  // namespace lockbench::results
