// Bounds a match to a few milliseconds; a name that would take longer belongs to kOther.
#define BOOST_REGEX_MAX_STATE_COUNT 100'000

#include "watch/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/regex.hpp>
#include <cctype>
#include <stdexcept>

#include "results/tables/text.h"

namespace lockbench::watch {
namespace {

constexpr std::string_view kSeparators = ":/.-_{}#|";

bool has_digit(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
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

}  // namespace

struct Families::Expression {
  boost::regex regex;
};

tl::expected<Families, std::string> Families::parse(const std::string& expression) {
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
  if (expression.find("(?<family>") == std::string::npos)
    return wrong("has no group (?<family>...)");
  try {
    Families families;
    families.expression_ = std::make_shared<const Expression>(Expression{boost::regex(expression)});
    return families;
  } catch (const boost::regex_error& error) {
    return wrong(fmt::format("is no expression ({})", error.what()));
  }
}

std::string Families::family_of(std::string_view lock) const {
  if (lock.size() > kLongestName) return std::string(kOther);
  if (expression_) {
    std::string family;
    try {
      boost::match_results<std::string_view::const_iterator> found;
      if (boost::regex_match(lock.begin(), lock.end(), found, expression_->regex)) {
        family = results::printable(found["family"].str());
      }
    } catch (const std::runtime_error&) {
      // The name needs more steps than BOOST_REGEX_MAX_STATE_COUNT.
    }
    return family.empty() ? std::string(kOther) : family;
  }
  const auto glob =
      std::ranges::find_if(globs_, [&](const std::string& one) { return glob_matches(one, lock); });
  // A pattern such as "*lock*" says nothing of what its locks are for.
  const bool says_nothing = glob == globs_.end() ? globs_.empty() : glob->starts_with('*');
  if (glob != globs_.end() && !says_nothing) return results::printable(*glob);
  const std::string_view beginning = says_nothing ? beginning_of(lock) : std::string_view();
  return beginning.empty() ? std::string(kOther) : results::printable(beginning);
}

bool glob_matches(std::string_view pattern, std::string_view text) {
  // On a mismatch, retry after the latest star, one character further. Earlier stars need no retry.
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
