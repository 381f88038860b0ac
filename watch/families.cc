#include "watch/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <utility>

#include "results/tables/text.h"

namespace lockbench::watch {
namespace {

constexpr std::string_view kSeparators = ":/.-_{}#|";

std::regex::flag_type grammar() {
  auto flags = std::regex::ECMAScript | std::regex::optimize;
#ifdef __GLIBCXX__
  // Keeps all states at once instead of trying one after the other: linear time, for any pattern.
  flags |= std::regex_constants::__polynomial;
#endif
  return flags;
}

bool has_digit(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string_view without_separators_at_end(std::string_view text) {
  const auto last = text.find_last_not_of(kSeparators);
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

/// "lock:order" of "lock:order:1234:eu", and of "lock:order:alice".
std::string_view beginning_of(std::string_view lock) {
  std::size_t from = std::min(lock.find_first_not_of(kSeparators), lock.size());
  std::size_t last_part = 0;
  while (from < lock.size()) {
    const std::size_t end = std::min(lock.find_first_of(kSeparators, from), lock.size());
    if (has_digit(lock.substr(from, end - from))) {
      return without_separators_at_end(lock.substr(0, from));
    }
    // "nightly-report" is one word.
    if (from > 0 && (lock[from - 1] == ':' || lock[from - 1] == '/')) last_part = from;
    from = std::min(lock.find_first_not_of(kSeparators, end), lock.size());
  }
  return without_separators_at_end(last_part == 0 ? lock : lock.substr(0, last_part));
}

/// The number of groups that begin before `end`, and whether an escape there is a reference back.
struct Groups {
  std::size_t before = 0;
  bool refers_back = false;
};

Groups groups_of(std::string_view pattern, std::size_t end) {
  Groups found;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      const char escaped = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
      if (!in_class && escaped >= '1' && escaped <= '9') found.refers_back = true;
      ++i;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
    } else if (c == '(' && i < end && !pattern.substr(i).starts_with("(?")) {
      ++found.before;
    }
  }
  return found;
}

}  // namespace

struct Families::Expression {
  std::regex regex;
  std::size_t group = 0;
};

Families::Families(std::vector<std::string> globs) : globs_(std::move(globs)) {}

tl::expected<Families, std::string> Families::parse(const std::string& expression) {
  constexpr std::string_view kNamed = "(?<family>";
  const auto wrong = [&](std::string_view what) {
    return tl::unexpected(fmt::format(
        "\"{}\" {}; allowed: an expression with one group (?<family>...), such as "
        "lock:(?<family>[a-z]+):.*",
        expression.size() <= kLongestPattern ? expression : expression.substr(0, 40) + "...",
        what));
  };
  if (expression.size() > kLongestPattern) {
    return wrong(fmt::format("is longer than {} bytes", kLongestPattern));
  }
  const std::size_t at = expression.find(kNamed);
  if (at == std::string::npos) return wrong("has no group (?<family>...)");
  std::string plain = expression;
  plain.replace(at, kNamed.size(), "(");
  if (plain.find("(?<") != std::string::npos) return wrong("has more than one named group");
  if (plain.find("(?=") != std::string::npos || plain.find("(?!") != std::string::npos) {
    return wrong("looks ahead, which is not linear");
  }
  const Groups groups = groups_of(plain, at);
  if (groups.refers_back) return wrong("refers back to a group, which is not linear");
  try {
    Families families;
    families.expression_ = std::make_shared<const Expression>(
        Expression{std::regex(plain, grammar()), groups.before + 1});
    return families;
  } catch (const std::regex_error& error) {
    return wrong(fmt::format("is no expression ({})", error.what()));
  }
}

std::string Families::family_of(std::string_view lock) const {
  if (lock.size() > kLongestName) return std::string(kOther);
  if (expression_) {
    std::match_results<std::string_view::const_iterator> found;
    if (!std::regex_match(lock.begin(), lock.end(), found, expression_->regex)) {
      return std::string(kOther);
    }
    std::string family = results::printable(found[expression_->group].str());
    return family.empty() ? std::string(kOther) : family;
  }
  for (const std::string& glob : globs_) {
    if (glob_matches(glob, lock)) return glob;
  }
  const std::string_view beginning = globs_.empty() ? beginning_of(lock) : std::string_view();
  return beginning.empty() ? std::string(kOther) : results::printable(beginning);
}

bool glob_matches(std::string_view pattern, std::string_view text) {
  // Of a star, the latest place where what follows it may begin: going back to one star is enough.
  std::size_t p = 0, t = 0, star = std::string_view::npos, retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace lockbench::watch
