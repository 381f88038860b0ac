#include "watch/sources/lock_value.h"

#include <algorithm>
#include <boost/regex.hpp>

#include "results/tables/text.h"

namespace lockbench::watch {
namespace {

/// Longer values are no tokens.
constexpr std::size_t kLongestOwner = 255;

std::optional<LockValue> read_json(std::string_view text) {
  static const boost::regex kHolder(
      "\"(?:holderIdentity|holder|owner|ownerId|owner_id|lockedBy|locked_by|leader)\"\\s*:\\s*"
      "\"((?:[^\"\\\\]|\\\\.){0,255})\"");
  boost::match_results<std::string_view::const_iterator> found;
  if (!boost::regex_search(text.begin(), text.end(), found, kHolder)) return std::nullopt;
  return LockValue{.owner = found[1].str(), .is_record = true};
}

bool is_printable(std::string_view value) {
  std::string text(value);
  std::ranges::replace_if(
      text, [](char c) { return c == '\t' || c == '\r'; }, ' ');
  return results::printable_page(text, false) == text;
}

/// ShedLock writes a new time when it shortens the lock, so only the host tells the owner.
std::string_view without_time(std::string_view token) {
  static const boost::regex kShedLock("ADDED:[-0-9T:.]+Z?@(.+)");
  boost::match_results<std::string_view::const_iterator> found;
  if (!boost::regex_match(token.begin(), token.end(), found, kShedLock)) return token;
  return token.substr(static_cast<std::size_t>(found.position(1)));
}

}  // namespace

std::optional<LockValue> read_lock_value(std::string_view value) {
  constexpr std::string_view kKubernetes("k8s\0", 4);
  if (value.starts_with(kKubernetes)) return std::nullopt;
  const std::size_t first = value.find_first_not_of(" \t\r\n");
  const char begins = first == std::string_view::npos ? ' ' : value[first];
  if (begins == '{' && is_printable(value)) return read_json(value.substr(0, 4096));
  // A list, a page, or a text of several lines; a token may be any bytes.
  const bool is_text = is_printable(value) && (begins == '[' || begins == '<' ||
                                               value.find('\n') != std::string_view::npos);
  if (is_text || value.size() > kLongestOwner) return std::nullopt;
  return LockValue{.owner = std::string(without_time(value)), .is_record = false};
}

}  // namespace lockbench::watch
