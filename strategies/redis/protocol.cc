#include "strategies/redis/protocol.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

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

std::string without_secret(std::string_view refusal) {
  return fmt::format("AUTH was refused: {}", refusal.substr(0, refusal.find(' ')));
}

}  // namespace lockbench::redis
