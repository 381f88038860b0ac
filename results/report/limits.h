#pragma once

#include <cstddef>

#include "results/report/view.h"

namespace lockbench::results::report {

// Bounds of a page: results may be of any size.
inline constexpr std::size_t kMostStrategies = 64, kMostRuns = 2000;
inline constexpr std::size_t kMostRows = 400;       ///< of a table
inline constexpr std::size_t kMostMeasured = 4000;  ///< points of an experiment
inline constexpr std::size_t kMostRemarks = 60;     ///< of one list
inline constexpr std::size_t kMostColumns = 300;    ///< of one text
inline constexpr std::size_t kMostCode = 4000;      ///< characters of a command
inline constexpr std::size_t kMostPoints = 240;     ///< of one line
inline constexpr std::size_t kMostPlays = 3000;
inline constexpr std::size_t kMostEvents = 80;          ///< of one play
inline constexpr std::size_t kMostPlayBytes = 900'000;  ///< of all plays' texts
inline constexpr std::size_t kMostShownAtFirst = 8;     ///< lines of one chart

/// Removes from a result what is beyond these bounds, and adds a remark for each removal.
void trim(Result& result, Remarks& said);

}  // namespace lockbench::results::report
