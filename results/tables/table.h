#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "results/file/model.h"
#include "results/tables/columns.h"

namespace lockbench::results {

struct TableOptions {
  bool color = false;                ///< ANSI colours: for terminals only
  std::optional<std::size_t> width;  ///< columns there are; no line of the table is longer
};

/// The console's table with its notes below, ending in a line break. For lack of room the least
/// important columns go first; a note names them and keeps what was counted there.
std::string to_table(const Result& result, const KnownFlaws& flaws, const TableOptions& options);

}  // namespace lockbench::results
