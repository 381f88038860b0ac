#include "strategies/redis/client/protocol.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <new>

namespace lockbench::redis {
namespace {

struct ReplyDeleter {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using ReplyPtr = std::unique_ptr<redisReply, ReplyDeleter>;

Reply to_reply(const redisReply& raw) {
  Reply reply;
  switch (raw.type) {
    case REDIS_REPLY_INTEGER:
      reply.type = Reply::Type::integer;
      reply.integer = raw.integer;
      break;
    case REDIS_REPLY_STATUS:
      reply.type = Reply::Type::status;
      reply.text.assign(raw.str, raw.len);
      break;
    case REDIS_REPLY_ERROR:
      reply.type = Reply::Type::error;
      reply.text.assign(raw.str, raw.len);
      break;
    case REDIS_REPLY_STRING:
      reply.type = Reply::Type::string;
      reply.text.assign(raw.str, raw.len);
      break;
    case REDIS_REPLY_ARRAY:
      reply.type = Reply::Type::array;
      reply.elements.reserve(raw.elements);
      for (std::size_t i = 0; i < raw.elements; ++i)
        reply.elements.push_back(to_reply(*raw.element[i]));
      break;
    default:
      break;
  }
  return reply;
}

/// Whether this answer to ROLE is that of a master.
bool is_master(const Reply& role) {
  return role.type == Reply::Type::array && !role.elements.empty() &&
         role.elements.front().is_text("master");
}

}  // namespace

void append_command(std::string& out, Command command) {
  fmt::format_to(std::back_inserter(out), "*{}\r\n", command.size());
  for (const std::string_view word : command) {
    fmt::format_to(std::back_inserter(out), "${}\r\n{}\r\n", word.size(), word);
  }
}

std::string_view key_of(Command command) {
  if (command[0] == "WAIT" || command[0] == "INFO") return {};
  const std::size_t place = command[0].starts_with("EVAL") ? 3 : 1;
  return place < command.size() ? command[place] : std::string_view();
}

void ReplyReader::Deleter::operator()(redisReader* reader) const { redisReaderFree(reader); }

ReplyReader::ReplyReader() : reader_(redisReaderCreate()) {
  if (!reader_) throw std::bad_alloc();
}

void ReplyReader::feed(std::span<const char> bytes) {
  redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
}

tl::expected<std::optional<Reply>, std::string> ReplyReader::next() {
  void* parsed = nullptr;
  if (redisReaderGetReply(reader_.get(), &parsed) != REDIS_OK) {
    return tl::unexpected<std::string>(reader_->errstr);
  }
  if (parsed == nullptr) return std::nullopt;
  return to_reply(*ReplyPtr(static_cast<redisReply*>(parsed)));
}

bool ReplyReader::holds_bytes() const { return reader_->pos < reader_->len; }

tl::expected<Reply, std::string> exchange_once(Transport& transport, ReplyReader& reader,
                                               Command command, Duration timeout,
                                               const std::stop_token& stop) {
  constexpr int kMaxPieces = 16;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string bytes;
  append_command(bytes, command);
  std::array<char, 4096> buffer;
  Transport::Status status = transport.send(bytes, timeout);
  for (int pieces = 0; status == Transport::Status::ok && pieces < kMaxPieces; ++pieces) {
    auto reply = reader.next();
    if (!reply) return tl::unexpected(reply.error());
    if (*reply) return std::move(**reply);
    const Duration left = deadline - std::chrono::steady_clock::now();
    const Transport::Received got = transport.receive(buffer, std::max(left, Duration{}), stop);
    status = got.status;
    reader.feed({buffer.data(), got.bytes});
  }
  if (status == Transport::Status::ok) return tl::unexpected<std::string>("the answer is too long");
  return tl::unexpected(describe(status, timeout));
}

bool is_no_permission(const StoreError& error) {
  // After the server's name.
  return error.kind == StoreError::Kind::rejected &&
         error.message.find(": NOPERM ") != std::string::npos;
}

bool is_read_only(const StoreError& error) {
  // For a write in a script, some servers put more text before it.
  return error.kind == StoreError::Kind::rejected &&
         error.message.find("READONLY ") != std::string::npos;
}

std::string info_field(std::string_view info, std::string_view name) {
  const std::string line = "\n" + std::string(name) + ":";
  const std::size_t at = info.find(line);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + line.size();
  return std::string(info.substr(begin, info.find_first_of("\r\n", begin) - begin));
}

StoreResult<int> connected_replicas(Connection& redis) {
  const auto info = redis.call({"INFO", "replication"});
  if (!info) return tl::unexpected(info.error());
  const std::string text = info_field(info->text, "connected_slaves");
  int replicas = 0;
  std::from_chars(text.data(), text.data() + text.size(), replicas);
  return replicas;
}

StoreResult<void> greet(const Endpoint& endpoint,
                        const std::function<StoreResult<Reply>(Command)>& exchange) {
  const auto say = [&](std::initializer_list<std::string_view> command) {
    return exchange(Command(command.begin(), command.size()));
  };
  if (!endpoint.password.empty()) {
    const auto done = endpoint.user.empty() ? say({"AUTH", endpoint.password})
                                            : say({"AUTH", endpoint.user, endpoint.password});
    if (!done) return tl::unexpected(done.error());
  }
  if (!endpoint.sentinels.empty()) {
    const auto role = say({"ROLE"});
    // Without the permission to ask, a replica shows at the first write.
    if (!role && !is_no_permission(role.error())) return tl::unexpected(role.error());
    if (role && !is_master(*role)) {
      return tl::unexpected(StoreError{
          StoreError::Kind::not_sent,
          endpoint.display() + ": the server that the sentinels name as master is a replica"});
    }
  }
  if (endpoint.database != 0) {
    const auto done = say({"SELECT", std::to_string(endpoint.database)});
    if (!done) return tl::unexpected(done.error());
  }
  return {};
}

StoreResult<void> greet(const Endpoint& endpoint, Transport& transport, ReplyReader& reader,
                        Duration timeout, const std::stop_token& stop, Env* env) {
  const std::string display = endpoint.display();
  const auto fail = [&](StoreError::Kind kind, std::string_view why) {
    return tl::unexpected(StoreError{kind, fmt::format("{}: {}", display, why)});
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
    if (command[0] != "AUTH") return fail(StoreError::Kind::rejected, reply->text);
    // Only the error code, as the message may quote the command with its secrets.
    const std::string code = reply->text.substr(0, reply->text.find(' '));
    return fail(StoreError::Kind::rejected, "AUTH was refused: " + code);
  });
}

}  // namespace lockbench::redis
