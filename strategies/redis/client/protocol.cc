#include "strategies/redis/client/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "strategies/carrier.h"
#include "strategies/number.h"
#include "strategies/redis/client/answers.h"

namespace lockbench::redis {
namespace {

using namespace std::string_literals;

constexpr std::size_t kLongestReply = std::size_t{1} << 20;
constexpr std::int64_t kMostElements = 1 << 14;
constexpr int kDeepest = 7;

constexpr std::string_view kLogin = "AUTH";

/// Reads one answer from the front of what has come.
class Parser {
 public:
  enum class State { complete, partial, invalid };

  explicit Parser(std::string_view bytes) : bytes_(bytes) {}

  State read(Reply& reply, int depth = 0) {
    const std::size_t end = bytes_.find("\r\n", used_);
    needed_ = bytes_.size() + 1;
    if (end == std::string_view::npos) return State::partial;
    const std::string_view line = bytes_.substr(used_, end - used_);
    used_ = end + 2;
    if (line.empty()) return State::invalid;
    const std::string_view rest = line.substr(1);
    switch (line.front()) {
      case '+':
        return read_line(Reply::Type::status, rest, reply);
      case '-':
        reply.code = error_code(rest);
        return read_line(Reply::Type::error, rest, reply);
      case ':':
        return read_integer(rest, reply);
      case '$':
        return read_text(rest, reply);
      case '*':
        return depth < kDeepest ? read_array(rest, reply, depth) : State::invalid;
      default:
        return State::invalid;
    }
  }

  std::size_t used() const { return used_; }
  /// For a partial answer: how many bytes to wait for, at least.
  std::size_t needed() const { return needed_; }

 private:
  static State read_line(Reply::Type type, std::string_view text, Reply& reply) {
    reply.type = type;
    reply.text = text;
    return State::complete;
  }

  static State read_integer(std::string_view text, Reply& reply) {
    const auto number = parse_number<std::int64_t>(text);
    reply.type = Reply::Type::integer;
    reply.integer = number.value_or(0);
    return number ? State::complete : State::invalid;
  }

  /// A length that is -1 means nil.
  State read_text(std::string_view length, Reply& reply) {
    const auto size = parse_number<std::int64_t>(length);
    if (!size || *size < -1) return State::invalid;
    if (*size == -1) return State::complete;
    if (*size > static_cast<std::int64_t>(kLongestReply)) return too_long();
    const auto bytes = static_cast<std::size_t>(*size);
    needed_ = used_ + bytes + 2;
    if (bytes_.size() < needed_) return State::partial;
    reply.type = Reply::Type::string;
    reply.text = bytes_.substr(used_, bytes);
    used_ = needed_;
    return bytes_.substr(used_ - 2, 2) == "\r\n" ? State::complete : State::invalid;
  }

  State read_array(std::string_view length, Reply& reply, int depth) {
    const auto size = parse_number<std::int64_t>(length);
    if (!size || *size < -1) return State::invalid;
    if (*size == -1) return State::complete;
    if (*size > kMostElements) return too_long();
    reply.type = Reply::Type::array;
    for (std::int64_t i = 0; i < *size; ++i) {
      const State state = read(reply.elements.emplace_back(), depth + 1);
      if (state != State::complete) return state;
    }
    return State::complete;
  }

  State too_long() {
    needed_ = kLongestReply + 1;
    return State::partial;
  }

  const std::string_view bytes_;
  std::size_t used_ = 0, needed_ = 0;
};

/// Why the server that answers ROLE like this is not to be used; empty: it is a master.
std::string why_no_master(const Reply& role) {
  if (role.type != Reply::Type::array || role.elements.empty()) {
    return describe_answer("ROLE", role, "a role");
  }
  if (role.elements.front().is_text("master")) return {};
  return "the server that the sentinels name as master is a replica";
}

// Formatting into a string takes several times as long.
void append_size(std::string& out, char type, std::size_t size) {
  std::array<char, 24> line;  // NOLINT(*-member-init): written before it is read
  line[0] = type;
  char* end = std::to_chars(line.data() + 1, line.data() + line.size() - 2, size).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(line.data(), end);
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
  if (command[0] == "WAIT" || command[0] == "INFO") return {};
  const std::size_t place = command[0].starts_with("EVAL") ? 3 : 1;
  return place < command.size() ? command[place] : std::string_view();
}

void ReplyReader::feed(std::span<const char> bytes) {
  bytes_.erase(0, used_);
  used_ = 0;
  bytes_.append(bytes.data(), bytes.size());
}

tl::expected<std::optional<Reply>, std::string> ReplyReader::next() {
  const std::string_view left = std::string_view(bytes_).substr(used_);
  if (left.size() < needed_) return std::nullopt;
  Parser parser(left);
  Reply reply;
  switch (parser.read(reply)) {
    case Parser::State::complete:
      used_ += parser.used();
      needed_ = 1;
      return reply;
    case Parser::State::partial:
      if (parser.needed() > kLongestReply) return tl::unexpected("an answer that is too long"s);
      needed_ = parser.needed();
      return std::nullopt;
    case Parser::State::invalid:
      break;
  }
  return tl::unexpected("an answer that is not in Redis's protocol"s);
}

StoreError::Code error_code(std::string_view text) {
  using Code = StoreError::Code;
  const std::string_view word = text.substr(0, text.find(' '));
  if (word == "NOSCRIPT") return Code::unknown_script;
  if (word == "NOAUTH") return Code::no_login;
  if (word == "NOPERM") return Code::no_permission;
  // For a write in a script, some servers put more text before it.
  return text.find("READONLY ") != std::string_view::npos ? Code::read_only : Code::other;
}

tl::expected<std::optional<Reply>, std::string> read_reply(Transport& transport,
                                                           ReplyReader& reader, Duration longest,
                                                           const std::stop_token& stop) {
  std::array<char, 1024> buffer;  // on the stack of each fiber that waits; answers are short
  const TimePoint end = Carrier::current().now() + longest;
  // Each round takes bytes of an answer whose size the reader bounds. The first one waits for
  // exactly `longest`: a timeout that is the socket's own costs no system call.
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

StoreError error_at(const std::string& display, StoreError::Kind kind, std::string_view why) {
  std::string text = printable(why);
  if (!text.starts_with(display)) text = fmt::format("{}: {}", display, text);
  return {kind, std::move(text)};
}

std::string why_not_logged_in(const Reply& reply) {
  // DENIED and ERR also answer what comes first on a connection that a server does not want.
  for (const char* const code : {"WRONGPASS", "NOAUTH", "NOPERM", "DENIED", "ERR"}) {
    if (reply.type == Reply::Type::error && reply.text.starts_with(code)) {
      return fmt::format("AUTH was refused: {}", code);
    }
  }
  return "AUTH was not answered with OK";
}

std::string info_field(std::string_view info, std::string_view name) {
  const std::string line = "\n" + std::string(name) + ":";
  const std::size_t at = info.find(line);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + line.size();
  return std::string(info.substr(begin, info.find_first_of("\r\n", begin) - begin));
}

StoreResult<int> connected_replicas(Connection& redis) {
  return redis.call(kText, {"INFO", "replication"}).map([](const std::string& info) {
    return parse_number<int>(info_field(info, "connected_slaves")).value_or(0);
  });
}

StoreResult<void> greet(const Endpoint& endpoint,
                        const std::function<StoreResult<Reply>(Command)>& exchange) {
  const auto say = [&](std::initializer_list<std::string_view> command) {
    return exchange(Command(command.begin(), command.size()));
  };
  const auto demand_ok = [&](std::initializer_list<std::string_view> command) -> StoreResult<void> {
    const auto reply = say(command);
    if (!reply) return tl::unexpected(reply.error());
    if (reply->is_text("OK")) return {};
    const std::string_view name = *command.begin();
    const std::string why =
        name == kLogin ? why_not_logged_in(*reply) : describe_answer(name, *reply, kOk.expected);
    return tl::unexpected(StoreError{StoreError::Kind::not_sent, endpoint.display() + ": " + why});
  };
  if (!endpoint.password.empty()) {
    auto done = endpoint.user.empty() ? demand_ok({kLogin, endpoint.password})
                                      : demand_ok({kLogin, endpoint.user, endpoint.password});
    if (!done) return done;
  }
  if (!endpoint.sentinels.empty()) {
    const auto role = say({"ROLE"});
    // Without the permission to ask, a replica shows at the first write.
    if (!role && role.error().code != StoreError::Code::no_permission) {
      return tl::unexpected(role.error());
    }
    if (const std::string why = role ? why_no_master(*role) : ""; !why.empty()) {
      return tl::unexpected(
          StoreError{StoreError::Kind::not_sent, endpoint.display() + ": " + why});
    }
  }
  if (endpoint.database == 0) return {};
  return demand_ok({"SELECT", std::to_string(endpoint.database)});
}

StoreResult<void> greet(const Endpoint& endpoint, Transport& transport, ReplyReader& reader,
                        Duration timeout, const std::stop_token& stop, Env* env) {
  const std::string display = endpoint.display();
  const auto fail = [&](StoreError::Kind kind, std::string_view why) {
    return tl::unexpected(error_at(display, kind, why));
  };
  return greet(endpoint, [&](Command command) -> StoreResult<Reply> {
    const CommandInfo info{.store = "redis", .endpoint = display, .name = command[0], .key = {}};
    if (env != nullptr && env->before_command(info) == CommandFate::drop) {
      env->after_command(info, CommandEnd::lost);
      return fail(StoreError::Kind::not_sent, "the connection was cut");
    }
    auto reply = exchange_once(transport, reader, command, timeout, stop);
    const bool accepted = reply && reply->type != Reply::Type::error;
    if (env != nullptr) {
      env->after_command(info, accepted ? CommandEnd::answered : CommandEnd::lost);
    }
    if (accepted) return *std::move(reply);
    if (!reply) return fail(StoreError::Kind::not_sent, reply.error());
    StoreError refused = error_at(display, StoreError::Kind::rejected,
                                  command[0] == kLogin ? why_not_logged_in(*reply) : reply->text);
    refused.code = reply->code;
    return tl::unexpected(std::move(refused));
  });
}

}  // namespace lockbench::redis
