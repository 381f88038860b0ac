#pragma once

#include <string>

namespace lockbench::results {

// Figures for people: three significant digits, no trailing zeros. What is not a number is "–".

enum class Unit { text, seconds, count, number, share };

/// "83 µs", "1.42 ms", "12.3 s", "2.5 min", "1.2 h".
std::string human_seconds(double seconds);

/// "7.25", "812", "41.2k", "1.3M".
std::string human_number(double value);

/// Exact below ten thousand, as human_number above.
std::string human_count(double count);

/// By the unit; a share is "75.0 %".
std::string human(double value, Unit unit);

}  // namespace lockbench::results
