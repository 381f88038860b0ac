#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/tables/units.h"

namespace lockbench::results {

enum class Good { higher, lower, unknown };

/// A figure that results are compared by.
struct ComparedFigure {
  std::string path;
  Unit unit = Unit::number;
  Good good = Good::unknown;
};

/// The one of that path, whether its direction is known or not.
ComparedFigure compared_figure(const std::string& path);

/// The usual ones, and those of these paths.
std::vector<ComparedFigure> compared_figures(std::span<const std::string> more);

}  // namespace lockbench::results
