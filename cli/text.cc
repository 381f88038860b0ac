#include "cli/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace lockbench {
namespace {

// Levenshtein's distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

// A password may itself contain '@' and '/', so everything up to the word's last '@' goes.
std::string without_credentials(std::string_view message) {
  std::string shown;
  while (true) {
    const std::size_t scheme = message.find("://");
    if (scheme == std::string_view::npos) return shown.append(message);
    const std::size_t start = scheme + 3;
    const std::size_t end = std::min(message.find_first_of(" \t\n\"", start), message.size());
    const std::size_t at = message.substr(0, end).rfind('@');
    shown.append(message.substr(0, start));
    const bool placeholder = message.substr(start).starts_with("[[user]:password@]");
    if (at != std::string_view::npos && at >= start && !placeholder) {
      shown.append("***").append(message.substr(at, end - at));
    } else {
      shown.append(message.substr(start, end - start));
    }
    message.remove_prefix(end);
  }
}

constexpr std::size_t kLongestName = 64;
constexpr std::size_t kMostSuggestions = 3;

}  // namespace

std::string presentable(std::string_view message) {
  std::string shown = without_credentials(message);
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return shown;
}

std::vector<std::string_view> close_names(std::string_view wrong,
                                          const std::vector<std::string_view>& names) {
  if (wrong.empty() || wrong.size() > kLongestName) return {};
  // Two slips in a short name, such as two letters swapped; a third of the letters in a long one.
  const std::size_t slips = wrong.size() < 3 ? 1 : std::max<std::size_t>(2, wrong.size() / 3);
  std::vector<std::pair<std::size_t, std::string_view>> close;
  for (const std::string_view name : names) {
    const std::size_t distance = edit_distance(wrong, name);
    const bool begins_so = wrong.size() >= 3 && name.starts_with(wrong);
    if (begins_so || distance <= slips) {
      close.emplace_back(distance, name);
    }
  }
  std::stable_sort(close.begin(), close.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  close.resize(std::min(close.size(), kMostSuggestions));
  std::vector<std::string_view> found(close.size());
  std::transform(close.begin(), close.end(), found.begin(),
                 [](const auto& one) { return one.second; });
  return found;
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& names) {
  const auto close = close_names(wrong, names);
  if (close.empty()) return "";
  return fmt::format(": did you mean {}?", fmt::join(close, ", "));
}

}  // namespace lockbench
