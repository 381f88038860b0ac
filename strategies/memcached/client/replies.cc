#include "strategies/memcached/client/replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/errors.h"
#include "strategies/number.h"
#include "strategies/url.h"

namespace lockbench::memcached {
namespace {

// What is longer is not read to its end: a server must not decide how much memory a client uses.
constexpr std::size_t kLongestLine = 2048;
constexpr std::size_t kLongestValue = std::size_t{1} << 20;  // the server's own default
constexpr std::size_t kLongestStats = std::size_t{64} << 10;

constexpr std::string_view kLineEnd = "\r\n";

std::string quoted(std::string_view said) {
  constexpr std::size_t kShown = 60;
  return fmt::format("\"{}{}\"", printable(said.substr(0, kShown)),
                     said.size() > kShown ? "..." : "");
}

tl::unexpected<BadReply> unlike(std::string_view expected, std::string_view said) {
  return tl::unexpected(BadReply{fmt::format("expected {}, got {}", expected, quoted(said))});
}

/// Nothing if it is not complete. The error is what was sent in place of a line.
tl::expected<std::optional<std::string_view>, std::string_view> line_of(std::string_view bytes) {
  const std::size_t end = bytes.substr(0, kLongestLine).find(kLineEnd);
  if (end != std::string_view::npos) return bytes.substr(0, end);
  if (bytes.size() >= kLongestLine) return tl::unexpected(bytes);
  return std::nullopt;
}

/// A line that is not what was expected: an error of the server's, or of another command.
tl::unexpected<BadReply> not_expected(std::string_view expected, std::string_view line) {
  if (line == "ERROR" || line.starts_with("CLIENT_ERROR") || line.starts_with("SERVER_ERROR")) {
    return tl::unexpected(BadReply{.why = quoted(line), .refused = true});
  }
  return unlike(expected, line);
}

std::string words_of(const Choice& choice) {
  std::string words(choice.yes);
  for (const std::string_view no : {choice.no, choice.or_no}) {
    if (!no.empty()) words += fmt::format(" or {}", no);
  }
  return words;
}

}  // namespace

ParseResult<bool> parse_choice(std::string_view bytes, const Choice& choice) {
  const auto line = line_of(bytes);
  if (!line) return unlike(words_of(choice), line.error());
  if (!*line) return std::nullopt;
  const bool yes = **line == choice.yes;
  const bool no = !(*line)->empty() && (**line == choice.no || **line == choice.or_no);
  if (!yes && !no) return not_expected(words_of(choice), **line);
  return Parsed<bool>{.value = yes, .size = (*line)->size() + kLineEnd.size()};
}

ParseResult<std::optional<Item>> parse_item(std::string_view bytes, std::string_view key) {
  const auto expected = [&] { return fmt::format("VALUE {} or END", key); };
  const auto header = line_of(bytes);
  if (!header) return unlike(expected(), header.error());
  if (!*header) return std::nullopt;
  std::string_view rest = **header;
  const std::size_t value_at = rest.size() + kLineEnd.size();
  if (rest == "END") return Parsed<std::optional<Item>>{.value = std::nullopt, .size = value_at};
  const std::string_view words = cut_at(rest, ' ');
  if (rest != "VALUE") return not_expected(expected(), **header);
  // VALUE key flags bytes version
  std::string_view name = words;
  std::string_view flags = cut_at(name, ' ');
  std::string_view length = cut_at(flags, ' ');
  const auto version = parse_number<std::uint64_t>(cut_at(length, ' '));
  const auto size = parse_number<std::size_t>(length);
  if (name != key || !parse_number<std::uint32_t>(flags) || !size || !version) {
    return unlike(expected(), **header);
  }
  if (*size > kLongestValue) {
    return tl::unexpected(BadReply{fmt::format("a value of {} bytes is too long", *size)});
  }
  constexpr std::string_view kEnd = "\r\nEND\r\n";
  const std::size_t end_at = value_at + *size;
  const std::string_view end = bytes.substr(std::min(end_at, bytes.size()), kEnd.size());
  if (!kEnd.starts_with(end)) return unlike("END after the value", end);
  if (end != kEnd) return std::nullopt;
  Item item{.value = std::string(bytes.substr(value_at, *size)), .version = *version};
  return Parsed<std::optional<Item>>{.value = std::move(item), .size = end_at + kEnd.size()};
}

ParseResult<std::string> parse_version(std::string_view bytes) {
  constexpr std::string_view kExpected = "VERSION";
  const auto line = line_of(bytes);
  if (!line) return unlike(kExpected, line.error());
  if (!*line) return std::nullopt;
  std::string_view word = **line;
  const std::string_view version = cut_at(word, ' ');
  if (word != kExpected) return not_expected(kExpected, **line);
  return Parsed<std::string>{.value = printable(version),
                             .size = (*line)->size() + kLineEnd.size()};
}

ParseResult<Stats> parse_stats(std::string_view bytes) {
  constexpr std::string_view kExpected = "STAT or END";
  Parsed<Stats> stats;
  while (true) {
    const auto line = line_of(bytes.substr(stats.size));
    if (!line) return unlike(kExpected, line.error());
    if (!*line) return std::nullopt;
    stats.size += (*line)->size() + kLineEnd.size();
    if (stats.size > kLongestStats) return unlike("END", **line);
    if (**line == "END") return stats;
    std::string_view word = **line;
    std::string_view name = cut_at(word, ' ');
    if (word != "STAT") return not_expected(kExpected, **line);
    const std::string_view value = cut_at(name, ' ');
    stats.value.insert_or_assign(std::string(name), printable(value));
  }
}

}  // namespace lockbench::memcached
