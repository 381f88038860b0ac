#include "watch/sources/patterns.h"

#include <algorithm>
#include <boost/regex.hpp>

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

}  // namespace lockbench::watch
