#pragma once

#include <string>
#include <string_view>

#include "results/file/model.h"
#include "results/tables/columns.h"

namespace lockbench::results {

/// The console's table with all its columns as a GitHub table, its notes as a list below.
std::string to_markdown(const Result& result, const KnownFlaws& flaws);

/// So that no text ends a cell or starts markup.
std::string markdown_text(std::string_view text);

}  // namespace lockbench::results
