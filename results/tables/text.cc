#include "results/tables/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/locale/utf.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace lockbench::results {
namespace {

bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

struct Character {
  std::size_t bytes = 1;
  std::uint32_t code = 0;  ///< 0 also for a byte that begins no UTF-8 character
};

Character first_character(std::string_view text) {
  namespace utf = boost::locale::utf;
  const char* at = text.data();
  const auto code = utf::utf_traits<char>::decode(at, text.data() + text.size());
  if (code == utf::illegal || code == utf::incomplete) return {};
  return {static_cast<std::size_t>(at - text.data()), code};
}

/// The length of "\x1b[", digits and "m" at the beginning; 0 for anything else.
std::size_t color_code_size(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

/// Levenshtein's distance, in bytes.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min(replaced, std::min(row[j], diagonal) + 1);
    }
  }
  return row.back();
}

constexpr std::string_view kNoNumber = "–";

struct Scale {
  double size;
  std::string_view name;
};

/// Three significant digits of a value from 0 to below 1000.
std::string three_digits(double value) {
  // An hourly job runs at 0.000278 a second.
  if (value > 0 && value < 0.0995) return fmt::format("{:.3g}", value);
  // Half a step below the powers of ten, so that 9.996 becomes 10 and not 10.00.
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

/// In the largest unit that fits at least once after rounding; units ascend.
std::string in_units(double value, std::span<const Scale> units) {
  const double size = std::abs(value);
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < units.size(); ++i) {
    // A value that rounds to a full next unit belongs to it: 999.7 µs is 1 ms.
    if (size >= units[i].size * 0.9995) chosen = i;
  }
  const std::string digits = three_digits(size / units[chosen].size);
  return fmt::format("{}{}{}", value < 0 && digits != "0" ? "-" : "", digits, units[chosen].name);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_code_point));
}

std::string clip(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::size_t bytes = 0;
  for (std::size_t seen = 0; bytes < text.size(); ++bytes) {
    if (starts_code_point(text[bytes]) && ++seen == columns) break;
  }
  return std::string(text.substr(0, bytes)) + "…";
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [bytes, code] = first_character(text);
    const bool command = code < 0x20U || (code >= 0x7FU && code < 0xA0U);
    const bool forbidden = code == 0xFFFEU || code == 0xFFFFU;  // in XML
    out += command || forbidden ? " " : text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return out;
}

std::string printable_page(std::string_view page, bool colors) {
  std::string out;
  out.reserve(page.size());
  while (!page.empty()) {
    const std::size_t end = std::min(page.find_first_of("\n\x1b"), page.size());
    out += printable(page.substr(0, end));
    page.remove_prefix(end);
    if (page.empty()) break;
    std::size_t kept = 1;
    if (page.front() != '\n') kept = colors ? color_code_size(page) : 0;
    out += kept > 0 ? page.substr(0, kept) : " ";
    page.remove_prefix(std::max<std::size_t>(kept, 1));
  }
  return out;
}

std::string ascii(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kSubstitutes{
      {{"µ", "u"},
       {"–", "-"},
       {"−", "-"},
       {"±", "+-"},
       {"≥", ">="},
       {"≤", "<="},
       {"…", "..."},
       {"×", "x"},
       {"·", "."},
       {"→", "->"},
       {"✓", "+"},
       {"✗", "x"},
       {"■", "#"},
       {"○", "o"}}};
  std::string out;
  while (!text.empty()) {
    if (static_cast<unsigned char>(text.front()) < 0x80U) {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    const auto* const found = std::ranges::find_if(
        kSubstitutes, [&](const auto& substitute) { return text.starts_with(substitute.first); });
    out += found == kSubstitutes.end() ? "?" : found->second;
    text.remove_prefix(1);
    while (!text.empty() && !starts_code_point(text.front())) text.remove_prefix(1);
  }
  return out;
}

std::string fold(std::string_view line, std::size_t columns) {
  std::string out;
  std::size_t used = 0;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    const std::size_t width = display_width(word);
    if (used > 0 && used + 1 + width > columns) {
      out += "\n  ";
      used = 2;
    } else if (used > 0) {
      out += ' ';
      ++used;
    }
    out += word;
    used += width;
  }
  return out;
}

std::string listed(const std::vector<std::string>& names, std::size_t most) {
  // The last name takes no more room than "1 more".
  const std::size_t shown = names.size() > most + 1 ? most : names.size();
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  if (shown < names.size()) text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> words;
  boost::split(words, text, boost::is_any_of(","));
  return words;
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& names) {
  constexpr std::size_t kLongestName = 64, kMostSuggestions = 3;
  if (wrong.empty() || wrong.size() > kLongestName) return "";
  // Two slips in a short name (two swapped letters, for example), a third of the letters in a long
  // one.
  const std::size_t slips = wrong.size() < 3 ? 1 : std::max<std::size_t>(2, wrong.size() / 3);
  std::multimap<std::size_t, std::string_view> close;
  for (const std::string_view name : names) {
    const std::size_t distance = edit_distance(wrong, name);
    const bool is_part = wrong.size() >= 3 && name.find(wrong) != std::string_view::npos;
    if (is_part || distance <= slips) close.emplace(distance, name);
  }
  if (close.empty()) return "";
  std::vector<std::string_view> closest;
  for (const auto& [distance, name] : close) {
    if (closest.size() < kMostSuggestions) closest.push_back(name);
  }
  return fmt::format(": did you mean {}?", fmt::join(closest, ", "));
}

std::string human_seconds(double seconds) {
  static constexpr std::array<Scale, 6> kScales{
      {{1e-9, " ns"}, {1e-6, " µs"}, {1e-3, " ms"}, {1, " s"}, {60, " min"}, {3600, " h"}}};
  if (!std::isfinite(seconds)) return std::string(kNoNumber);
  return seconds == 0 ? "0 s" : in_units(seconds, kScales);
}

std::string human_number(double value) {
  static constexpr std::array<Scale, 5> kScales{
      {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}};
  return std::isfinite(value) ? in_units(value, kScales) : std::string(kNoNumber);
}

std::string human_count(double count) {
  return std::abs(count) < 10000 ? fmt::format("{:.0f}", count) : human_number(count);
}

std::string human(double value, Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return human_seconds(value);
    case Unit::count:
      return human_count(value);
    case Unit::share:
      return std::isfinite(value) ? fmt::format("{:.1f} %", 100 * value) : std::string(kNoNumber);
    case Unit::number:
    case Unit::text:
      break;
  }
  return human_number(value);
}

}  // namespace lockbench::results
