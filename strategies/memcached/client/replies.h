#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

// The replies of memcached's text protocol (protocol.txt). Each function reads one from the front
// of what a server has sent, however broken that is, and changes nothing.
namespace lockbench::memcached {

struct Item {
  std::string value;
  std::uint64_t version = 0;  ///< changes with every change of the item ("cas unique")
};

/// A reply and its size in bytes.
template <class T>
struct Parsed {
  T value;
  std::size_t size = 0;
};

struct BadReply {
  std::string why;  ///< printable
  /// The server said that it did not do it. Otherwise the reply is not one to this command.
  bool refused = false;
};

/// Nothing: the reply is not complete.
template <class T>
using ParseResult = tl::expected<std::optional<Parsed<T>>, BadReply>;

/// What is answered in one line: `yes` if it was done, one of the others if not.
struct Choice {
  std::string_view yes;
  std::string_view no{}, or_no{};
};

ParseResult<bool> parse_choice(std::string_view bytes, const Choice& choice);
/// The answer to "gets key": the item, or nothing.
ParseResult<std::optional<Item>> parse_item(std::string_view bytes, std::string_view key);
/// The answer to "version".
ParseResult<std::string> parse_version(std::string_view bytes);
using Stats = std::map<std::string, std::string, std::less<>>;
/// The answer to "stats".
ParseResult<Stats> parse_stats(std::string_view bytes);

}  // namespace lockbench::memcached
