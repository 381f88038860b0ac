#include "strategies/memcached/client/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "strategies/carrier.h"

namespace lockbench::memcached {
namespace {

constexpr std::size_t kLongestKey = 250;
constexpr std::string_view kUnfit =
    "a key must have 1 to 250 characters, without spaces and control characters";

bool fits(std::string_view key) {
  return !key.empty() && key.size() <= kLongestKey &&
         std::ranges::all_of(key, [](unsigned char c) { return c > ' ' && c != 0x7f; });
}

/// A command that stores a value, with its end.
std::string storing(std::string_view name, std::string_view key, std::int64_t seconds,
                    std::string_view value, std::string_view last = {}) {
  return fmt::format("{} {} 0 {} {}{}\r\n{}\r\n", name, key, seconds, value.size(), last, value);
}

/// Without what the server says, which may repeat the password.
ParseResult<bool> parse_login(std::string_view bytes) {
  auto parsed = parse_choice(bytes, {.yes = "STORED"});
  if (!parsed) {
    parsed.error().why = parsed.error().refused ? "authentication was refused"
                                                : "an answer that is none to the authentication";
  }
  return parsed;
}

auto one_of(const Choice& choice) {
  return [choice](std::string_view bytes) { return parse_choice(bytes, choice); };
}

const auto parse_deleted = one_of({.yes = "DELETED", .no = "NOT_FOUND"});

/// How many of so many were there.
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

template <class T>
bool is_answer(const StoreResult<T>& result) {
  return result || result.error().kind == StoreError::Kind::rejected;
}

Duration until(TimePoint end) { return std::max(end - Carrier::current().now(), Duration::zero()); }

}  // namespace

Connection::Connection(Endpoint endpoint, const Timeouts& timeouts, Env& env)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      timeouts_(timeouts),
      env_(env) {}

tl::unexpected<StoreError> Connection::fail(StoreError::Kind kind, std::string_view why) const {
  return tl::unexpected(StoreError{kind, fmt::format("{}: {}", display_, why)});
}

CommandInfo Connection::info(std::string_view name, std::string_view key) const {
  return {.store = "memcached", .endpoint = display_, .name = name, .key = key};
}

StoreResult<void> Connection::connect(const std::stop_token& stop) {
  if (transport_) return {};
  close();
  const TimePoint end = Carrier::current().now() + timeouts_.answer;
  auto transport = connect_socket({.host = endpoint_.server.host, .port = endpoint_.server.port},
                                  timeouts_, stop, endpoint_.tls.get());
  if (!transport) return fail(StoreError::Kind::not_sent, transport.error());
  transport_ = *std::move(transport);
  received_.clear();
  StoreResult<void> greeted;
  if (!endpoint_.password.empty()) {
    // An item that has expired: a server without authentication must not keep the password.
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
    answer = exchange<T>(request, until(end), stop, parse);
  }
  env_.after_command(info(name, {}), answer ? CommandEnd::answered : CommandEnd::lost);
  if (answer) return {};
  if (answer.error().kind == StoreError::Kind::unanswered) {
    answer.error().kind = StoreError::Kind::not_sent;
  }
  return tl::unexpected(std::move(answer.error()));
}

template <class T, class Parse>
StoreResult<T> Connection::call(std::string_view name, std::string_view key,
                                std::string_view request, const std::stop_token& stop,
                                const Parse& parse) {
  if (!fits(key)) return fail(StoreError::Kind::not_sent, kUnfit);
  StoreResult<T> answer = fail(StoreError::Kind::not_sent, "the connection was cut");
  if (env_.before_command(info(name, key)) != CommandFate::drop) {
    answer = connect(stop).and_then([&] { return exchange<T>(request, timeouts_, stop, parse); });
  }
  const bool answered = is_answer(answer);
  const CommandFate fate =
      env_.after_command(info(name, key), answered ? CommandEnd::answered : CommandEnd::lost);
  if (!answered || fate == CommandFate::drop) close();
  if (answered && fate == CommandFate::drop) {
    return fail(StoreError::Kind::unanswered, "the answer was lost");
  }
  return answer;
}

template <class T, class Parse>
StoreResult<T> Connection::exchange(std::string_view request, Duration timeout,
                                    const std::stop_token& stop, const Parse& parse) {
  const Transport::Status status = transport_->send(request, timeout);
  if (status != Transport::Status::ok) {
    return fail(StoreError::Kind::unanswered, describe(status, timeouts_, transport_.get()));
  }
  auto answer = receive<T>(timeout, stop, parse);
  if (!answer || received_.empty()) return answer;
  // It would be taken for the reply to the next command.
  close();
  return fail(StoreError::Kind::unanswered, "a reply that nobody asked for");
}

template <class T, class Parse>
StoreResult<T> Connection::receive(Duration timeout, const std::stop_token& stop,
                                   const Parse& parse) {
  std::array<char, 1024> buffer;  // on the stack of each fiber that waits; replies are short
  // All pieces of a reply share one deadline.
  const TimePoint end = Carrier::current().now() + timeout;
  for (Duration left = timeout;; left = end - Carrier::current().now()) {
    auto parsed = parse(received_);
    if (!parsed) {
      // What the server did not understand may have left bytes that it takes for a command.
      close();
      return fail(
          parsed.error().refused ? StoreError::Kind::rejected : StoreError::Kind::unanswered,
          parsed.error().why);
    }
    if (*parsed) {
      received_.erase(0, (*parsed)->size);
      return std::move((*parsed)->value);
    }
    auto status = Transport::Status::timed_out;
    std::size_t bytes = 0;
    if (left >= Duration::zero()) {
      const Transport::Received got = transport_->receive(buffer, left, stop);
      status = got.status;
      bytes = got.bytes;
    }
    if (status != Transport::Status::ok) {
      return fail(StoreError::Kind::unanswered, describe(status, timeouts_, transport_.get()));
    }
    received_.append(buffer.data(), bytes);
  }
}

StoreResult<bool> Connection::add(std::string_view key, std::string_view value,
                                  std::int64_t seconds, const std::stop_token& stop) {
  return call<bool>("add", key, storing("add", key, seconds, value), stop,
                    one_of({.yes = "STORED", .no = "NOT_STORED"}));
}

StoreResult<std::optional<Item>> Connection::gets(std::string_view key,
                                                  const std::stop_token& stop) {
  return call<std::optional<Item>>(
      "gets", key, fmt::format("gets {}\r\n", key), stop,
      [key](std::string_view bytes) { return parse_item(bytes, key); });
}

StoreResult<bool> Connection::cas(std::string_view key, std::string_view value,
                                  std::int64_t seconds, std::uint64_t version,
                                  const std::stop_token& stop) {
  return call<bool>("cas", key, storing("cas", key, seconds, value, fmt::format(" {}", version)),
                    stop, one_of({.yes = "STORED", .no = "EXISTS", .or_no = "NOT_FOUND"}));
}

StoreResult<bool> Connection::remove(std::string_view key, const std::stop_token& stop) {
  return call<bool>("delete", key, fmt::format("delete {}\r\n", key), stop, parse_deleted);
}

StoreResult<bool> Connection::touch(std::string_view key, std::int64_t seconds) {
  return call<bool>("touch", key, fmt::format("touch {} {}\r\n", key, seconds), {},
                    one_of({.yes = "TOUCHED", .no = "NOT_FOUND"}));
}

StoreResult<std::size_t> Connection::remove_all(std::span<const std::string> keys,
                                                const std::stop_token& stop) {
  if (!std::ranges::all_of(keys, fits)) return fail(StoreError::Kind::not_sent, kUnfit);
  std::string request;
  bool cut = false;
  for (const std::string& key : keys) {
    fmt::format_to(std::back_inserter(request), "delete {}\r\n", key);
    cut = env_.before_command(info("delete", key)) == CommandFate::drop || cut;
  }
  StoreResult<std::size_t> removed = fail(StoreError::Kind::not_sent, "the connection was cut");
  if (!cut) {
    removed = connect(stop).and_then([&] {
      return exchange<std::size_t>(request, timeouts_, stop, [&](std::string_view bytes) {
        return parse_deletions(bytes, keys.size());
      });
    });
  }
  for (const std::string& key : keys) {
    env_.after_command(info("delete", key),
                       is_answer(removed) ? CommandEnd::answered : CommandEnd::lost);
  }
  if (!removed) close();
  return removed;
}

StoreResult<StoreFacts> Connection::facts() {
  if (auto connected = connect(); !connected) return tl::unexpected(connected.error());
  auto stats = exchange<Stats>("stats\r\n", timeouts_, {}, parse_stats);
  if (!stats) {
    close();
    return tl::unexpected(stats.error());
  }
  const auto number = [&](const char* name) {
    return std::strtod((*stats)[name].c_str(), nullptr);
  };
  // Both are from one clock; the difference is the start time.
  return StoreFacts{
      .version = (*stats)["version"],
      .instance = fmt::format("{}@{}", (*stats)["pid"], number("time") - number("uptime")),
      .cpu_seconds = number("rusage_user") + number("rusage_system")};
}

}  // namespace lockbench::memcached
