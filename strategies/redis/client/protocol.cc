#include "strategies/redis/client/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/number.h"

namespace lockbench::redis {
namespace {

using namespace std::string_literals;

constexpr std::size_t kLongestReply = std::size_t{1} << 20;
constexpr std::int64_t kMostElements = 1 << 14;
constexpr int kDeepest = 7;

constexpr std::string_view kLogin = "AUTH";

/// Reads one answer from the front of the received bytes.
struct Parser {
  enum class State { complete, partial, invalid };

  std::string_view bytes;
  std::size_t used = 0;
  std::size_t needed = 0;  ///< for a partial answer: how many bytes to wait for, at least

  State read(Reply& reply, int depth = 0) {
    const std::size_t end = bytes.find("\r\n", used);
    needed = bytes.size() + 1;
    if (end == std::string_view::npos) return State::partial;
    const std::string_view line = bytes.substr(used, end - used);
    used = end + 2;
    if (line.empty()) return State::invalid;
    const std::string_view rest = line.substr(1);
    const auto number = parse_number<std::int64_t>(rest);
    switch (line.front()) {
      case '+':
        reply.type = Reply::Type::status;
        reply.text = rest;
        return State::complete;
      case '-':
        reply.type = Reply::Type::error;
        reply.text = rest;
        reply.code = error_code(rest);
        return State::complete;
      case ':':
        reply.type = Reply::Type::integer;
        reply.integer = number.value_or(0);
        return number ? State::complete : State::invalid;
      case '$':
      case '*':
        if (!number || *number < -1) return State::invalid;
        if (*number == -1) return State::complete;  // nil
        if (line.front() == '$') return read_text(*number, reply);
        return depth < kDeepest ? read_array(*number, reply, depth) : State::invalid;
      default:
        return State::invalid;
    }
  }

  State read_text(std::int64_t size, Reply& reply) {
    if (size > static_cast<std::int64_t>(kLongestReply)) return too_long();
    const auto length = static_cast<std::size_t>(size);
    needed = used + length + 2;
    if (bytes.size() < needed) return State::partial;
    reply.type = Reply::Type::string;
    reply.text = bytes.substr(used, length);
    used = needed;
    return bytes.substr(used - 2, 2) == "\r\n" ? State::complete : State::invalid;
  }

  State read_array(std::int64_t size, Reply& reply, int depth) {
    if (size > kMostElements) return too_long();
    reply.type = Reply::Type::array;
    for (std::int64_t i = 0; i < size; ++i) {
      const State state = read(reply.elements.emplace_back(), depth + 1);
      if (state != State::complete) return state;
    }
    return State::complete;
  }

  State too_long() {
    needed = kLongestReply + 1;
    return State::partial;
  }
};

std::string describe(const Reply& reply) {
  using Type = Reply::Type;
  if (reply.type == Type::nil) return "nil";
  if (reply.type == Type::integer) return fmt::format("the integer {}", reply.integer);
  if (reply.type == Type::string) return fmt::format("text of {} bytes", reply.text.size());
  if (reply.type == Type::array) return fmt::format("an array of {}", reply.elements.size());
  return (reply.type == Type::error ? "the error " : "the status ") + printable(reply.text);
}

/// Why a login failed, by the answer to AUTH. Does not quote the server, which knows the password
/// by now and may repeat it.
std::string why_not_logged_in(const Reply& reply) {
  // This has nothing to do with the password, and quotes nothing.
  if (reply.type == Reply::Type::error && reply.text == "ERR max number of clients reached") {
    return "the connection was refused: max number of clients reached";
  }
  // A server that does not want a connection answers its first command with DENIED or ERR.
  for (const char* const code : {"WRONGPASS", "NOAUTH", "NOPERM", "DENIED", "ERR"}) {
    if (reply.type == Reply::Type::error && reply.text.starts_with(code)) {
      return fmt::format("AUTH was refused: {}", code);
    }
  }
  return "AUTH was not answered with OK";
}

/// The host and port in the answer; nothing if it is another answer.
std::optional<SocketAddress> address_in(const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.size() != 2) return std::nullopt;
  const std::string& host = reply.elements[0].text;
  const auto port = parse_number<std::uint16_t>(reply.elements[1].text);
  if (host.empty() || !port || *port == 0) return std::nullopt;
  return SocketAddress{.host = host, .port = *port};
}

void append_size(std::string& out, char type, std::size_t size) {
  const fmt::format_int digits(size);  // fmt::format_to() takes several times as long
  out.append(1, type).append(digits.data(), digits.size()).append("\r\n");
}

/// Sends the password only to a sentinel that asks for one: many have none.
tl::expected<Reply, std::string> ask_sentinel(Transport& transport, const Endpoint& endpoint,
                                              Command command, Duration timeout,
                                              const std::stop_token& stop) {
  const TimePoint end = Carrier::current().now() + timeout;
  const auto left = [&] { return std::max(end - Carrier::current().now(), Duration::zero()); };
  ReplyReader reader;
  auto reply = exchange_once(transport, reader, command, timeout, stop);
  const bool asks = reply && reply->code == StoreError::Code::no_login;
  if (!asks || endpoint.password.empty()) return reply;
  std::vector<std::string_view> login{kLogin, endpoint.user, endpoint.password};
  if (endpoint.user.empty()) login.erase(login.begin() + 1);
  auto done = exchange_once(transport, reader, login, left(), stop);
  if (!done) return done;
  if (!done->is_text("OK")) return tl::unexpected(why_not_logged_in(*done));
  return exchange_once(transport, reader, command, left(), stop);
}

/// The master, by the first sentinel that knows it. The error names the sentinel that failed last,
/// and no secret.
tl::expected<SocketAddress, std::string> find_master(const Endpoint& endpoint,
                                                     const Timeouts& timeouts,
                                                     const std::stop_token& stop) {
  const std::string_view question[] = {"SENTINEL", "get-master-addr-by-name", endpoint.master};
  // A sentinel that hangs must not use up the time of the others. Connecting and answering get one
  // share each.
  const Duration share = timeouts.answer / (2 * static_cast<int>(endpoint.sentinels.size()));
  std::string failure;
  for (const HostPort& sentinel : endpoint.sentinels) {
    // Without this, the remaining sentinels would be tried one after the other.
    if (stop.stop_requested())
      return tl::unexpected<std::string>("stopped while asking the sentinels");
    const auto answer = connect_socket({.host = sentinel.host, .port = sentinel.port}, share, stop,
                                       endpoint.tls.get())
                            .and_then([&](const std::unique_ptr<Transport>& transport) {
                              return ask_sentinel(*transport, endpoint, question, share, stop);
                            });
    if (const auto master = answer ? address_in(*answer) : std::nullopt) return *master;
    const std::string why = !answer            ? answer.error()
                            : answer->is_nil() ? "it does not watch " + endpoint.master
                            : answer->type == Reply::Type::error ? answer->text
                                                                 : "its answer is not an address";
    failure = fmt::format("{}: {}", sentinel.display(), why);
  }
  return tl::unexpected(fmt::format("no sentinel knows the master; {}", failure));
}

}  // namespace

void append_command(std::string& out, Command command) {
  append_size(out, '*', command.size());
  for (const std::string_view word : command) {
    append_size(out, '$', word.size());
    out.append(word).append("\r\n");
  }
}

std::string_view key_of(Command command) {
  if (command[0] == "WAIT" || command[0] == "INFO" || command[0] == "CLUSTER") return {};
  const std::size_t place = command[0].starts_with("EVAL") ? 3 : 1;
  return place < command.size() ? command[place] : std::string_view();
}

std::string describe_answer(std::string_view name, const Reply& reply, std::string_view expected) {
  return fmt::format("it answered {} with {}, expected {}", name, describe(reply), expected);
}

std::optional<std::int64_t> number_in(const Reply& reply, std::int64_t least, std::int64_t most) {
  const bool fits =
      reply.type == Reply::Type::integer && reply.integer >= least && reply.integer <= most;
  return fits ? std::optional(reply.integer) : std::nullopt;
}

tl::expected<Push, std::string> read_push(const Reply& reply) {
  if (reply.type == Reply::Type::error) return tl::unexpected(printable(reply.text));
  const bool triple = reply.type == Reply::Type::array && reply.elements.size() == 3;
  if (triple && reply.elements[1].type == Reply::Type::string) {
    std::string_view kind = reply.elements[0].text;
    const std::string& channel = reply.elements[1].text;
    // Sharded channels have the same kinds with an s before them.
    if (kind == "smessage" || kind == "ssubscribe" || kind == "sunsubscribe") kind.remove_prefix(1);
    if (kind == "message") return Push{Push::Kind::message, channel};
    if (kind == "subscribe") return Push{Push::Kind::subscribed, channel};
    if (kind == "unsubscribe") return Push{Push::Kind::unsubscribed, channel};
  }
  return tl::unexpected(fmt::format("it sent {}, expected a message", describe(reply)));
}

tl::expected<std::optional<Reply>, std::string> ReplyReader::next() {
  const std::string_view left = std::string_view(bytes_).substr(used_);
  if (left.size() < needed_) return std::nullopt;
  Parser parser{.bytes = left};
  Reply reply;
  const Parser::State state = parser.read(reply);
  if (state == Parser::State::invalid) {
    return tl::unexpected("not an answer in Redis's protocol"s);
  }
  if (state == Parser::State::partial) {
    if (parser.needed > kLongestReply) return tl::unexpected("the answer is too long"s);
    needed_ = parser.needed;
    return std::nullopt;
  }
  used_ += parser.used;
  needed_ = 1;
  return reply;
}

StoreError::Code error_code(std::string_view text) {
  using Code = StoreError::Code;
  const std::string_view word = text.substr(0, text.find(' '));
  if (word == "NOSCRIPT") return Code::unknown_script;
  if (word == "NOAUTH") return Code::no_login;
  if (word == "NOPERM") return Code::no_permission;
  if (word == "MOVED") return Code::moved;
  if (word == "ASK") return Code::asked;
  if (word == "TRYAGAIN") return Code::try_again;
  // For a write in a script, some servers put other text first.
  return text.find("READONLY ") != std::string_view::npos ? Code::read_only : Code::other;
}

tl::expected<std::optional<Reply>, std::string> read_reply(Transport& transport,
                                                           ReplyReader& reader, Duration longest,
                                                           const std::stop_token& stop) {
  std::array<char, 1024> buffer;  // on the stack of each fiber that waits; answers are short
  const TimePoint end = Carrier::current().now() + longest;
  // Ends, as each round reads bytes of an answer and the reader bounds its size. The first round
  // waits for exactly `longest`: the socket has that timeout already, which saves a system call.
  for (Duration left = longest;; left = end - Carrier::current().now()) {
    auto reply = reader.next();
    if (!reply || *reply) return reply;
    if (left < Duration::zero()) return std::nullopt;
    const auto [status, bytes] = transport.receive(buffer, left, stop);
    if (status == Transport::Status::timed_out) return std::nullopt;
    if (status != Transport::Status::ok) {
      return tl::unexpected(describe(status, longest, &transport));
    }
    reader.feed({buffer.data(), bytes});
  }
}

tl::expected<Reply, std::string> exchange_once(Transport& transport, ReplyReader& reader,
                                               Command command, Duration timeout,
                                               const std::stop_token& stop) {
  const TimePoint end = Carrier::current().now() + timeout;
  std::string bytes;
  append_command(bytes, command);
  const Transport::Status sent = transport.send(bytes, timeout);
  if (sent != Transport::Status::ok) return tl::unexpected(describe(sent, timeout, &transport));
  const Duration left = std::max(end - Carrier::current().now(), Duration::zero());
  auto reply = read_reply(transport, reader, left, stop);
  if (!reply) return tl::unexpected(std::move(reply.error()));
  if (*reply) return **std::move(reply);
  return tl::unexpected(describe(Transport::Status::timed_out, timeout));
}

std::string info_field(std::string_view info, std::string_view name) {
  const std::string line = "\n" + std::string(name) + ":";
  const std::size_t at = info.find(line);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + line.size();
  return std::string(info.substr(begin, info.find_first_of("\r\n", begin) - begin));
}

tl::expected<std::unique_ptr<Transport>, std::string> connect_server(const Endpoint& endpoint,
                                                                     const Timeouts& timeouts,
                                                                     const std::stop_token& stop,
                                                                     Dialer& dialer) {
  const TlsSettings* const tls = endpoint.tls.get();
  if (endpoint.sentinels.empty()) {
    return connect_socket(endpoint.address(), timeouts, stop, tls, dialer);
  }
  // As in connect_socket(); the sentinels and the server get one half each.
  if (stop.stop_requested()) {
    return connect_server(endpoint, time_to_connect_after_stop(timeouts) / 2, {});
  }
  const auto master = find_master(endpoint, timeouts, stop);
  if (!master) return tl::unexpected(master.error());
  return connect_socket(*master, timeouts, stop, tls).map_error([&](const std::string& why) {
    return fmt::format("{}: {}", display_address(master->host, std::to_string(master->port)), why);
  });
}

StoreResult<void> greet(const Endpoint& endpoint, Transport& transport, ReplyReader& reader,
                        Duration timeout, const std::stop_token& stop, Env* env) {
  const std::string display = endpoint.display();
  const auto fail = [&](StoreError::Kind kind, std::string_view why) {
    return failure_at(display, kind, why);
  };
  const auto say = [&](WordList words) -> StoreResult<Reply> {
    const std::string_view name = *words.begin();
    const CommandInfo info{.store = "redis", .endpoint = display, .name = name, .key = {}};
    if (env != nullptr && env->before_command(info) == CommandFate::drop) {
      env->after_command(info, CommandEnd::lost);
      return fail(StoreError::Kind::not_sent, "the connection was cut");
    }
    auto reply =
        exchange_once(transport, reader, Command(words.begin(), words.size()), timeout, stop);
    const bool accepted = reply && reply->type != Reply::Type::error;
    if (env != nullptr) {
      env->after_command(info, accepted ? CommandEnd::answered : CommandEnd::lost);
    }
    if (accepted) return *std::move(reply);
    if (!reply) return fail(StoreError::Kind::not_sent, reply.error());
    return failure_at(display, StoreError::Kind::rejected,
                      name == kLogin ? why_not_logged_in(*reply) : reply->text, reply->code);
  };
  const auto demand_ok = [&](WordList words) -> StoreResult<void> {
    const auto reply = say(words);
    if (!reply) return tl::unexpected(reply.error());
    if (reply->is_text("OK")) return {};
    const std::string_view name = *words.begin();
    return fail(StoreError::Kind::not_sent, name == kLogin
                                                ? why_not_logged_in(*reply)
                                                : describe_answer(name, *reply, kOk.expected));
  };
  if (!endpoint.password.empty()) {
    auto done = endpoint.user.empty() ? demand_ok({kLogin, endpoint.password})
                                      : demand_ok({kLogin, endpoint.user, endpoint.password});
    if (!done) return done;
  }
  if (!endpoint.sentinels.empty()) {
    const auto role = say({"ROLE"});
    // Without the permission for ROLE, a replica shows at the first write.
    if (!role && role.error().code != StoreError::Code::no_permission) {
      return tl::unexpected(role.error());
    }
    if (role && (role->type != Reply::Type::array || role->elements.empty())) {
      return fail(StoreError::Kind::not_sent, describe_answer("ROLE", *role, "a role"));
    }
    if (role && !role->elements.front().is_text("master")) {
      return fail(StoreError::Kind::not_sent,
                  "the server that the sentinels name as master is a replica");
    }
  }
  if (endpoint.database == 0) return {};
  return demand_ok({"SELECT", std::to_string(endpoint.database)});
}

}  // namespace lockbench::redis
