#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockbench::results {

/// Columns that UTF-8 text takes on a terminal: one per code point, which holds for all that
/// lockbench writes itself (µ, ±, –, …).
std::size_t display_width(std::string_view text);

/// At most so many columns, with "…" in place of what was cut off.
std::string clip(std::string_view text, std::size_t columns);

/// One line that no terminal takes for commands: control characters become spaces.
std::string printable(std::string_view text);

/// Breaks a line between words so that no part is wider than `columns`, as far as its words allow;
/// continuation lines are indented by two.
std::string fold(std::string_view line, std::size_t columns);

/// Levenshtein's distance, in bytes.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace lockbench::results
