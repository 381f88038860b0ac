#include "watch/shape.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "results/tables/text.h"

namespace lockbench::watch {
namespace {

constexpr std::size_t kUuid = 36, kPlainUuid = 32;
constexpr std::size_t kSequenceDigits = 10;  // that ZooKeeper appends

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// Of a maker's name before a sequence node's own, which is left in `name`.
std::string take_maker(std::string_view& name) {
  constexpr std::string_view kProtected = "_c_";
  if (name.starts_with(kProtected)) {
    std::string maker(name.substr(kProtected.size(), kUuid));
    if (is_uuid(maker)) {
      name.remove_prefix(kProtected.size() + maker.size());
      if (name.starts_with('-')) name.remove_prefix(1);
      return maker;
    }
  }
  for (const std::size_t length : {kUuid, kPlainUuid}) {
    if (name.size() <= length || !is_uuid(name.substr(0, length))) continue;
    std::string maker(name.substr(0, length));
    name.remove_prefix(length);
    return maker;
  }
  return {};
}

/// A number apart from a token that is none itself.
TokenValue fenced(std::string_view token, std::string_view number) {
  constexpr std::size_t kShortestToken = 8;
  const auto fence = results::parse_number<std::uint64_t>(number);
  if (!fence || token.size() < kShortestToken || all_digits(token)) return {};
  return {Shape::fenced_token, std::string(token), fence};
}

}  // namespace

bool is_uuid(std::string_view text) {
  if (text.size() == kPlainUuid) return std::all_of(text.begin(), text.end(), is_hex);
  if (text.size() != kUuid) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !is_hex(text[i])) return false;
  }
  return true;
}

std::optional<SequenceNode> read_sequence_node(std::string_view name) {
  if (name.size() < kSequenceDigits) return std::nullopt;
  const std::string_view digits = name.substr(name.size() - kSequenceDigits);
  if (!all_digits(digits)) return std::nullopt;
  const auto sequence = results::parse_number<std::uint64_t>(digits);
  if (!sequence) return std::nullopt;
  name.remove_suffix(kSequenceDigits);
  SequenceNode node{.sequence = *sequence};
  node.maker = take_maker(name);
  node.prefix = std::string(name);
  static constexpr std::array<std::string_view, 3> kReaders{"__READ__", "__rlock__", "read-"};
  node.shared = std::find(kReaders.begin(), kReaders.end(), name) != kReaders.end();
  return node;
}

TokenValue read_token(std::string_view value) {
  constexpr std::size_t kLongestToken = 256;
  if (value.empty() || value.size() > kLongestToken) return {};
  // JSON, XML, serialised objects: a cache's value.
  constexpr std::string_view kStructured = "{[<";
  const bool printable = std::none_of(value.begin(), value.end(),
                                      [](unsigned char c) { return std::iscntrl(c) != 0; });
  if (printable && kStructured.find(value.front()) != std::string_view::npos) return {};
  for (const char separator : {':', '|', '#'}) {
    const std::size_t first = value.find(separator), last = value.rfind(separator);
    if (first == std::string_view::npos || first != last) continue;
    const std::string_view before = value.substr(0, first), after = value.substr(first + 1);
    TokenValue read = fenced(before, after);
    if (read.shape == Shape::unknown) read = fenced(after, before);
    if (read.shape != Shape::unknown) return read;
  }
  return {Shape::token, std::string(value), std::nullopt};
}

std::optional<LockTableColumns> read_lock_table(const std::vector<std::string>& columns) {
  const auto find = [&](const auto& names) -> std::string {
    for (const std::string_view wanted : names) {
      for (const std::string& column : columns) {
        const bool same = std::equal(column.begin(), column.end(), wanted.begin(), wanted.end(),
                                     [](unsigned char a, char b) { return std::tolower(a) == b; });
        if (same) return column;
      }
    }
    return {};
  };
  static constexpr std::array<std::string_view, 3> kNames{"name", "lock_name", "lock_key"};
  static constexpr std::array<std::string_view, 3> kUntils{"lock_until", "locked_until",
                                                           "expires_at"};
  static constexpr std::array<std::string_view, 3> kOwners{"locked_by", "lock_owner", "owner"};
  LockTableColumns found{find(kNames), find(kUntils), find(kOwners)};
  if (found.name.empty() || found.until.empty() || found.by.empty()) return std::nullopt;
  return found;
}

}  // namespace lockbench::watch
