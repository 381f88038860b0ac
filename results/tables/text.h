#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockbench::results {

/// What `of`, a function or a pointer to a member, gives for each item.
template <class Items, class Of>
auto each_of(const Items& items, Of of) {
  std::vector<std::decay_t<std::invoke_result_t<Of&, decltype(*std::begin(items))>>> values;
  std::ranges::transform(items, std::back_inserter(values), of);
  return values;
}

/// Columns that UTF-8 text takes on a terminal. Counts code points: all characters that lockbench
/// itself writes (µ, ±, –, …) take one column each.
std::size_t display_width(std::string_view text);

/// Cut to at most `columns`, with "…" in place of the rest.
std::string clip(std::string_view text, std::size_t columns);

/// With spaces instead of control characters (C0, DEL and C1), of bytes that are not UTF-8, and of
/// characters that XML forbids, so that a terminal does not take them for commands.
std::string printable(std::string_view text);

/// Like printable(), for a page: line breaks stay, and with `colors` so do the escape codes of
/// colors.
std::string printable_page(std::string_view page, bool colors);

/// Breaks a line between words so that no part is wider than `columns`, unless a single word is;
/// continuation lines are indented by two.
std::string fold(std::string_view line, std::size_t columns);

/// In ASCII, for terminals without UTF-8: "us" for "µs", "-" for "–", "?" for characters without a
/// substitute.
std::string ascii(std::string_view text);

/// "a, b and c"; of more than `most` names: "a, b and 7 more".
std::string listed(const std::vector<std::string>& names, std::size_t most = 8);

/// The words between commas.
std::vector<std::string> split_at_commas(std::string_view text);

/// ": did you mean a, b?" with the names that `wrong` is a part or a misspelling of: at most three,
/// closest first; empty if no name is close.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& names);

// Figures for people: three significant digits, no trailing zeros. NaN and infinity are "–".

enum class Unit { text, seconds, count, number, share };

/// "83 µs", "1.42 ms", "12.3 s", "2.5 min", "1.2 h".
std::string human_seconds(double seconds);

/// "7.25", "812", "41.2k", "1.3M".
std::string human_number(double value);

/// Exact below ten thousand, else like human_number.
std::string human_count(double count);

/// By the unit; a share is "75.0 %".
std::string human(double value, Unit unit);

}  // namespace lockbench::results
