#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "results/tables/formats.h"
#include "watch/picture.h"

namespace lockbench::cli {

/// What a watch sees, for a terminal of so many lines: its servers, what it found, the table of
/// families and that of the locks that hurt most. Each is cut where there is no room for it.
/// `style` says how wide the terminal is.
std::vector<std::string> watch_view(const watch::Picture& picture, std::size_t lines,
                                    const results::TextStyle& style);

}  // namespace lockbench::cli
