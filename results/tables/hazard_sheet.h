#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/file/model.h"

namespace lockbench::results {

struct MatrixOptions {
  bool color = false;
  int width = 0;  ///< in columns; 0: as wide as it gets
};

/// The names in the order in which they first occur.
std::vector<std::string> scenarios_of(const std::vector<Hazard>& hazards);
std::vector<std::string> strategies_of(const std::vector<Hazard>& hazards);

/// Scenarios by strategies, a word a cell, in as many blocks as the width asks for, and a legend of
/// the words that occur.
std::string to_matrix(const std::vector<Hazard>& hazards, const MatrixOptions& options);
/// For a page on GitHub: tables of a few columns, one for strategies of a family that fare alike, a
/// row for each scenario that harms one of them; the harmless scenarios are named below.
std::string to_matrix_markdown(const std::vector<Hazard>& hazards);
/// One line a cell.
std::string to_csv(const std::vector<Hazard>& hazards);

/// Of each cell that is not what was declared, and of each that is not well: two lines, which those
/// of a scenario that ended alike for the same reason share.
std::string reasons(const std::vector<Hazard>& hazards, const MatrixOptions& options);

/// The whole play: what was asked, who believed what and when, what came out.
std::string explain(const Hazard& hazard);

}  // namespace lockbench::results
