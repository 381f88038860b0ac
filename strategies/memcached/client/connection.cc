#include "strategies/memcached/client/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <utility>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/number.h"

namespace lockbench::memcached {
namespace {

// Longer answers are not read to their end: a server must not decide how much memory a client uses.
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

/// Nothing if the line is not complete. The error holds the bytes sent in place of a line.
tl::expected<std::optional<std::string_view>, std::string_view> line_of(std::string_view bytes) {
  const std::size_t end = bytes.substr(0, kLongestLine).find(kLineEnd);
  if (end != std::string_view::npos) return bytes.substr(0, end);
  if (bytes.size() >= kLongestLine) return tl::unexpected(bytes);
  return std::nullopt;
}

/// An unexpected line: a server's error, or the answer to another command.
tl::unexpected<BadReply> not_expected(std::string_view expected, std::string_view line) {
  const bool refused = line == "ERROR" || line.starts_with("CLIENT_ERROR") ||
                       line.starts_with("SERVER_ERROR out of memory");
  // Any other one may be a proxy's, which has passed the command on and got no answer.
  if (!refused && !line.starts_with("SERVER_ERROR")) return unlike(expected, line);
  return tl::unexpected(BadReply{.why = quoted(line), .refused = refused});
}

std::string words_of(const Choice& choice) {
  std::string words(choice.yes);
  for (const std::string_view no : {choice.no, choice.or_no}) {
    if (!no.empty()) words += fmt::format(" or {}", no);
  }
  return words;
}

constexpr std::size_t kLongestKey = 250;
constexpr std::string_view kUnfit =
    "a key must have 1 to 250 characters, without spaces and control characters";

/// Without spaces and control characters.
bool is_one_word(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c != 0x7f; });
}

bool fits(std::string_view key) {
  return !key.empty() && key.size() <= kLongestKey && is_one_word(key);
}

/// A command that stores a value, with its end.
std::string storing(std::string_view name, std::string_view key, std::int64_t seconds,
                    std::string_view value, std::string_view last = {}) {
  return fmt::format("{} {} 0 {} {}{}\r\n{}\r\n", name, key, seconds, value.size(), last, value);
}

/// Hides the server's words, which may repeat the password.
ParseResult<bool> parse_login(std::string_view bytes) {
  auto parsed = parse_choice(bytes, {.yes = "STORED"});
  if (!parsed) {
    parsed.error().why = parsed.error().refused ? "authentication was refused"
                                                : "unexpected answer to the authentication";
  }
  return parsed;
}

auto one_of(const Choice& choice) {
  return [choice](std::string_view bytes) { return parse_choice(bytes, choice); };
}

const auto parse_deleted = one_of({.yes = "DELETED", .no = "NOT_FOUND"});

/// How many of `count` keys existed.
ParseResult<std::size_t> parse_deletions(std::string_view bytes, std::size_t count) {
  Parsed<std::size_t> all{.value = 0};
  for (std::size_t reply = 0; reply < count; ++reply) {
    const auto one = parse_deleted(bytes.substr(all.size));
    if (!one) return tl::unexpected(one.error());
    if (!*one) return std::nullopt;
    all.value += (*one)->value ? 1 : 0;
    all.size += (*one)->size;
  }
  return all;
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

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  const UrlForm form{.what = "the address of a memcached server",
                     .allowed =
                         "[memcached://][user:password@]HOST[:PORT], or memcaches:// for TLS, with "
                         "?cacert=FILE and other settings",
                     .schemes = {"", "memcached", "memcaches"},
                     .default_port = 11211,
                     .login = UrlForm::Login::user_password,
                     .tls = text.starts_with("memcaches://")};
  auto url = parse_url(text, form);
  if (!url) return url;
  if (url->path == "/") url->path.clear();
  if (!url->path.empty()) return invalid_url("a path is not allowed", form);
  // Either would end the login early.
  if (!is_one_word(url->user) || !is_one_word(url->password)) {
    return invalid_url("user and password must not contain spaces and control characters", form);
  }
  return url;
}

Connection::Connection(Endpoint endpoint, const Timeouts& timeouts, Env& env, Dialer& dialer)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      timeouts_(timeouts),
      env_(env),
      dialer_(dialer) {}

StoreResult<void> Connection::connect(const std::stop_token& stop) {
  if (transport_) return {};
  const TimePoint end = Carrier::current().now() + timeouts_.answer;
  const HostPort& server = endpoint_.hosts.front();
  auto transport = connect_socket({.host = server.host, .port = server.port}, timeouts_, stop,
                                  endpoint_.tls.get(), dialer_);
  if (!transport) return fail(StoreError::Kind::not_sent, transport.error());
  transport_ = *std::move(transport);
  received_.clear();
  StoreResult<void> greeted;
  if (!endpoint_.password.empty()) {
    // As an expired item: a server without authentication must not keep the password.
    const std::string login = endpoint_.user + " " + endpoint_.password;
    greeted = greet<bool>("auth", storing("set", "lockbench", -1, login), end, stop, parse_login);
  }
  if (greeted) {
    greeted = greet<std::string>("version", "version\r\n", end, stop, parse_version);
  }
  if (!greeted) close();
  return greeted;
}

template <class T, class Parse>
StoreResult<void> Connection::greet(std::string_view name, std::string_view request, TimePoint end,
                                    const std::stop_token& stop, const Parse& parse) {
  StoreResult<T> answer = fail(StoreError::Kind::not_sent, "the connection was cut");
  if (env_.before_command(info(name, {})) != CommandFate::drop) {
    answer = exchange<T>(request, std::max(end - Carrier::current().now(), Duration::zero()), stop,
                         parse);
  }
  env_.after_command(info(name, {}), answer ? CommandEnd::answered : CommandEnd::lost);
  return before_request(answer.map([](const T&) {}));
}

template <class T, class Parse>
StoreResult<T> Connection::call(std::string_view name, std::span<const std::string_view> keys,
                                std::string_view request, const std::stop_token& stop,
                                const Parse& parse) {
  if (!std::ranges::all_of(keys, fits)) return fail(StoreError::Kind::not_sent, kUnfit);
  bool cut = false, dropped = false;
  for (const std::string_view key : keys) {
    cut = env_.before_command(info(name, key)) == CommandFate::drop || cut;
  }
  StoreResult<T> answer = fail(StoreError::Kind::not_sent, "the connection was cut");
  if (!cut) {
    if (last_use_.was_long_ago(env_.now()) && transport_ && !transport_->is_quiet()) close();
    answer = connect(stop).and_then([&] { return exchange<T>(request, timeouts_, stop, parse); });
  }
  const bool answered = answer || answer.error().kind == StoreError::Kind::rejected;
  const CommandEnd end = answered ? CommandEnd::answered : CommandEnd::lost;
  for (const std::string_view key : keys) {
    dropped = env_.after_command(info(name, key), end) == CommandFate::drop || dropped;
  }
  if (!answered || dropped) close();
  if (answered && dropped) return fail(StoreError::Kind::unanswered, "the answer was lost");
  return answer;
}

template <class T, class Parse>
StoreResult<T> Connection::exchange(std::string_view request, Duration timeout,
                                    const std::stop_token& stop, const Parse& parse) {
  const Transport::Status sent = transport_->send(request, timeout);
  if (sent != Transport::Status::ok) {
    return fail(StoreError::Kind::unanswered, describe(sent, timeouts_, transport_.get()));
  }
  std::array<char, 1024> buffer;  // on the stack of each fiber that waits; replies are short
  // All pieces of a reply share one deadline.
  const TimePoint end = Carrier::current().now() + timeout;
  for (Duration left = timeout;; left = end - Carrier::current().now()) {
    auto parsed = parse(received_);
    if (!parsed) {
      // The rest of a request that it did not understand may pass for another command.
      close();
      return fail(
          parsed.error().refused ? StoreError::Kind::rejected : StoreError::Kind::unanswered,
          parsed.error().why);
    }
    if (*parsed) {
      received_.erase(0, (*parsed)->size);
      if (received_.empty()) return std::move((*parsed)->value);
      // The rest would pass for the reply to the next command.
      close();
      return fail(StoreError::Kind::unanswered, "a reply that nobody asked for");
    }
    const auto got = left < Duration::zero() ? Transport::Received{Transport::Status::timed_out, 0}
                                             : transport_->receive(buffer, left, stop);
    if (got.status != Transport::Status::ok) {
      return fail(StoreError::Kind::unanswered, describe(got.status, timeouts_, transport_.get()));
    }
    received_.append(buffer.data(), got.bytes);
  }
}

StoreResult<bool> Connection::add(std::string_view key, std::string_view value,
                                  std::int64_t seconds, const std::stop_token& stop) {
  return call<bool>("add", {&key, 1}, storing("add", key, seconds, value), stop,
                    one_of({.yes = "STORED", .no = "NOT_STORED"}));
}

StoreResult<std::optional<Item>> Connection::gets(std::string_view key,
                                                  const std::stop_token& stop) {
  return call<std::optional<Item>>(
      "gets", {&key, 1}, fmt::format("gets {}\r\n", key), stop,
      [key](std::string_view bytes) { return parse_item(bytes, key); });
}

StoreResult<bool> Connection::cas(std::string_view key, std::string_view value,
                                  std::int64_t seconds, std::uint64_t version,
                                  const std::stop_token& stop) {
  return call<bool>("cas", {&key, 1},
                    storing("cas", key, seconds, value, fmt::format(" {}", version)), stop,
                    one_of({.yes = "STORED", .no = "EXISTS", .or_no = "NOT_FOUND"}));
}

StoreResult<bool> Connection::remove(std::string_view key, const std::stop_token& stop) {
  return call<bool>("delete", {&key, 1}, fmt::format("delete {}\r\n", key), stop, parse_deleted);
}

StoreResult<bool> Connection::touch(std::string_view key, std::int64_t seconds) {
  return call<bool>("touch", {&key, 1}, fmt::format("touch {} {}\r\n", key, seconds), {},
                    one_of({.yes = "TOUCHED", .no = "NOT_FOUND"}));
}

StoreResult<std::size_t> Connection::remove_all(std::span<const std::string> keys,
                                                const std::stop_token& stop) {
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  std::string request;
  for (const std::string_view key : views) {
    fmt::format_to(std::back_inserter(request), "delete {}\r\n", key);
  }
  return call<std::size_t>("delete", views, request, stop, [&](std::string_view bytes) {
    return parse_deletions(bytes, views.size());
  });
}

StoreResult<StoreFacts> Connection::facts() {
  return call<Stats>("stats", {}, "stats\r\n", {}, parse_stats).map([](Stats stats) {
    const auto number = [&](const char* name) { return std::strtod(stats[name].c_str(), nullptr); };
    // One clock gives both; their difference is the start time.
    return StoreFacts{
        .version = stats["version"],
        .instance = fmt::format("{}@{}", stats["pid"], number("time") - number("uptime")),
        .cpu_seconds = number("rusage_user") + number("rusage_system")};
  });
}

}  // namespace lockbench::memcached
