#include "strategies/redis/client/protocol.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <array>
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
  std::string bytes;
  append_command(bytes, command);
  std::array<char, 4096> buffer;
  Transport::Status status = transport.send(bytes, timeout);
  for (int pieces = 0; status == Transport::Status::ok && pieces < kMaxPieces; ++pieces) {
    auto reply = reader.next();
    if (!reply) return tl::unexpected(reply.error());
    if (*reply) return std::move(**reply);
    const Transport::Received got = transport.receive(buffer, timeout, stop);
    status = got.status;
    reader.feed({buffer.data(), got.bytes});
  }
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

bool is_master(const Reply& role) {
  return role.type == Reply::Type::array && !role.elements.empty() &&
         role.elements.front().is_text("master");
}

StoreError not_the_master(const Endpoint& endpoint) {
  return {StoreError::Kind::not_sent,
          endpoint.display() + ": its sentinels name a master that is not a master, or not yet"};
}

std::string without_secret(std::string_view refusal) {
  return fmt::format("AUTH was refused: {}", refusal.substr(0, refusal.find(' ')));
}

}  // namespace lockbench::redis
