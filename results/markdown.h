#pragma once

#include <string>

#include "results/columns.h"
#include "results/model.h"

namespace lockbench::results {

/// The console's table with all its columns as a GitHub table, its notes as a list below.
std::string to_markdown(const Result& result, const KnownFlaws& flaws);

}  // namespace lockbench::results
