#include "results/tables/text.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

namespace lockbench::results {
namespace {

bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_code_point));
}

std::string clip(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) {
    return std::string(text);
  }
  if (columns == 0) {
    return "";
  }
  std::size_t bytes = 0;
  for (std::size_t seen = 0; bytes < text.size(); ++bytes) {
    if (starts_code_point(text[bytes]) && ++seen == columns) {
      break;
    }
  }
  return std::string(text.substr(0, bytes)) + "…";
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (byte == 0xC2U && next >= 0x80U && next < 0xA0U) {  // U+0080 to U+009F are commands too
      out += ' ';
      ++i;
    } else {
      out += byte < 0x20U || byte == 0x7FU ? ' ' : text[i];
    }
  }
  return out;
}

std::string ascii(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kSubstitutes{
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
       {"■", "#"}}};
  std::string out;
  while (!text.empty()) {
    if (static_cast<unsigned char>(text.front()) < 0x80U) {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    const auto* const found =
        std::find_if(kSubstitutes.begin(), kSubstitutes.end(),
                     [&](const auto& substitute) { return text.starts_with(substitute.first); });
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

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace lockbench::results
