#include "watch/sources/redis_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "strategies/carrier.h"
#include "strategies/redis/client/sentinel.h"

namespace lockbench::watch {

using redis::Command;
using redis::Reply;
using redis::ReplyReader;

RedisFeed::RedisFeed(redis::Endpoint endpoint, Duration command_timeout, Env& env)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      timeout_(command_timeout),
      env_(env) {}

StoreResult<void> RedisFeed::connect(const std::stop_token& stop) {
  if (transport_) return {};
  auto transport = redis::connect_server(endpoint_, timeout_, stop);
  if (!transport) {
    return tl::unexpected(
        StoreError{StoreError::Kind::not_sent, fmt::format("{}: {}", display_, transport.error())});
  }
  ReplyReader reader;
  auto greeted = redis::greet(endpoint_, **transport, reader, timeout_, stop, nullptr);
  if (!greeted) return greeted;
  reader_ = std::move(reader);
  transport_ = *std::move(transport);
  return {};
}

StoreResult<Reply> RedisFeed::call(Command command, const std::stop_token& stop) {
  if (auto connected = connect(stop); !connected) {
    return tl::unexpected(std::move(connected.error()));
  }
  const CommandInfo info{.store = "redis", .endpoint = display_, .name = command[0], .key = {}};
  if (env_.before_command(info) == CommandFate::drop) {
    env_.after_command(info, CommandEnd::lost);
    return broken("the connection was cut");
  }
  std::string bytes;
  redis::append_command(bytes, command);
  const Transport::Status sent = transport_->send(bytes, timeout_);
  StoreResult<std::optional<Reply>> reply;
  if (sent == Transport::Status::ok) {
    reply = next(timeout_, stop);
  } else {
    reply = broken(lockbench::describe(sent, timeout_, transport_.get()));
  }
  env_.after_command(info, reply && *reply ? CommandEnd::answered : CommandEnd::lost);
  if (!reply) return tl::unexpected(std::move(reply.error()));
  if (!*reply) return broken("no answer within " + format_duration(timeout_));
  if ((*reply)->type != Reply::Type::error) return **std::move(reply);
  return tl::unexpected(StoreError{StoreError::Kind::rejected,
                                   fmt::format("{}: {}", display_, printable((*reply)->text))});
}

StoreResult<std::optional<Reply>> RedisFeed::next(Duration longest, const std::stop_token& stop) {
  if (!transport_) return broken("not connected");
  std::array<char, 16384> buffer;
  const TimePoint deadline = Carrier::current().now() + longest;
  // Each round takes bytes of an answer whose size the reader bounds.
  while (true) {
    auto reply = reader_.next();
    if (!reply) return broken(reply.error());
    if (*reply) return *std::move(reply);
    const Duration left = std::max(deadline - Carrier::current().now(), Duration::zero());
    const auto [status, bytes] = transport_->receive(buffer, left, stop);
    if (status == Transport::Status::timed_out) return std::nullopt;
    if (status != Transport::Status::ok) {
      return broken(lockbench::describe(status, timeout_, transport_.get()));
    }
    reader_.feed({buffer.data(), bytes});
  }
}

void RedisFeed::close() noexcept {
  transport_.reset();
  reader_ = {};
}

tl::unexpected<StoreError> RedisFeed::broken(std::string_view why) {
  StoreError error{StoreError::Kind::unanswered, fmt::format("{}: {}", display_, printable(why))};
  close();
  return tl::unexpected(std::move(error));
}

std::optional<Invalidation> read_invalidation(const Reply& reply) {
  const bool fits = reply.type == Reply::Type::array && reply.elements.size() == 3 &&
                    reply.elements[0].is_text("message") &&
                    reply.elements[1].is_text("__redis__:invalidate");
  if (!fits) return std::nullopt;
  const Reply& keys = reply.elements[2];
  if (keys.is_nil()) return Invalidation{.all = true, .keys = {}};
  if (keys.type != Reply::Type::array) return std::nullopt;
  Invalidation read;
  for (const Reply& key : keys.elements) {
    if (key.type == Reply::Type::string) read.keys.push_back(key.text);
  }
  return read;
}

std::optional<Message> read_message(const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.empty()) return std::nullopt;
  const auto& parts = reply.elements;
  const bool of_pattern = parts.size() == 4 && parts[0].is_text("pmessage");
  const bool of_channel = parts.size() == 3 && parts[0].is_text("message");
  if (!of_pattern && !of_channel) return std::nullopt;
  const Reply &channel = parts[parts.size() - 2], &payload = parts.back();
  if (channel.type != Reply::Type::string || payload.type != Reply::Type::string) {
    return std::nullopt;
  }
  return Message{.channel = channel.text, .payload = payload.text};
}

}  // namespace lockbench::watch
