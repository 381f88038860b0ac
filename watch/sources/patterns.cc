#include "watch/sources/patterns.h"

#include <algorithm>
#include <array>
#include <boost/regex.hpp>
#include <cctype>

#include "watch/families.h"

namespace lockbench::watch {
bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return glob_matches(pattern, name); });
}

bool is_wanted(const Request& request, std::string_view name) {
  return matches_any(request.locks, name) && !matches_any(request.exclude, name);
}

std::string prefix_of(std::string_view pattern) {
  return std::string(pattern.substr(0, pattern.find_first_of("*?")));
}

std::vector<std::string> merged_prefixes(const std::vector<std::string>& patterns) {
  std::vector<std::string> all;
  all.reserve(patterns.size());
  for (const std::string& pattern : patterns) all.push_back(prefix_of(pattern));
  std::ranges::sort(all);
  std::vector<std::string> merged;
  for (std::string& prefix : all) {
    if (merged.empty() || !prefix.starts_with(merged.back())) merged.push_back(std::move(prefix));
  }
  return merged;
}

std::string redis_glob(std::string_view pattern) {
  std::string glob;
  for (const char c : pattern) {
    if (c == '[' || c == ']' || c == '\\' || c == '^') glob += '\\';
    glob += c;
  }
  return glob;
}

bool is_uuid(std::string_view text) {
  static const boost::regex kForm(kUuid);
  return boost::regex_match(text.begin(), text.end(), kForm);
}

bool is_random(std::string_view owner) {
  static const boost::regex kForm("(?=.*[0-9])[-[:alnum:]_+/=:.]{16,128}");
  return boost::regex_match(owner.begin(), owner.end(), kForm);
}

bool sounds_like_lock(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kWords{
      "lock", "mutex", "lease", "leader", "semaphore", "election", "singleton", "exclusive"};
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  // "block" and "clock" contain "lock" but are no locks, so a word must start there or have a known
  // prefix.
  for (const std::string_view word : kWords) {
    for (std::size_t at = lower.find(word); at != std::string::npos;
         at = lower.find(word, at + 1)) {
      const bool inside = at > 0 && std::isalpha(static_cast<unsigned char>(lower[at - 1])) != 0;
      if (!inside || std::isupper(static_cast<unsigned char>(name[at])) != 0) return true;
      const std::string_view before = std::string_view(lower).substr(0, at);
      if (before.ends_with("red") || before.ends_with("dist") || before.ends_with("sem") ||
          before.ends_with("shed") || before.ends_with("un")) {
        return true;
      }
    }
  }
  return false;
}

std::string generalised(std::string_view name) {
  // A UUID, a number, or a long hexadecimal word with a digit.
  static const boost::regex kIds(
      "(?<![[:alnum:]])"
      "(?:[[:xdigit:]]{8}(?:-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}|[0-9]+(?![[:alnum:]])|"
      "(?=[a-fA-F]*[0-9])[[:xdigit:]]{8,}(?![[:alnum:]]))");
  constexpr std::size_t kLongest = 1024;
  const std::string shown(name.substr(0, kLongest));
  return boost::regex_replace(shown, kIds, "*") + (name.size() > kLongest ? "*" : "");
}

}  // namespace lockbench::watch
