#include "strategies/redis/client/hiredis_subscriber.h"

#include <fmt/format.h>

#include <array>
#include <deque>
#include <mutex>

#include "strategies/redis/client/protocol.h"
#include "strategies/redis/client/sentinel.h"
#include "strategies/redis/client/socket.h"

namespace lockbench::redis {
namespace {

/// A mutex guards sending; the thread that waits for messages does not hold it while it waits.
class HiredisSubscriber : public Subscriber {
 public:
  HiredisSubscriber(Endpoint endpoint, Duration timeout, Env& env)
      : endpoint_(std::move(endpoint)),
        display_(endpoint_.display()),
        timeout_(timeout),
        env_(env) {}

  StoreResult<void> connect(const std::stop_token& stop) override {
    if (transport_) return {};
    auto transport = connect_server(endpoint_, timeout_, stop);
    if (!transport) return fail(StoreError::Kind::not_sent, transport.error());
    ReplyReader reader;
    const auto exchange = [&](Command command) {
      return greet_with(**transport, reader, command, stop);
    };
    if (auto greeted = greet(endpoint_, exchange); !greeted) return greeted;
    const std::scoped_lock lock(sending_);
    reader_ = std::move(reader);
    transport_ = std::move(*transport);
    return {};
  }

  StoreResult<void> subscribe(const std::string& channel) override {
    return send("SUBSCRIBE", channel);
  }
  StoreResult<void> unsubscribe(const std::string& channel) override {
    return send("UNSUBSCRIBE", channel);
  }

  StoreResult<std::optional<Push>> receive(Duration longest, const std::stop_token& stop) override {
    if (!transport_) return fail(StoreError::Kind::not_sent, "not connected");
    std::array<char, 4096> buffer;
    while (true) {
      if (is_cut()) return broken("the connection was cut");
      auto reply = reader_.next();
      if (!reply) return broken(reply.error());
      if (*reply) return pushed(**reply);
      const auto [status, bytes] = transport_->receive(buffer, longest, stop);
      if (status == Transport::Status::timed_out) return std::nullopt;
      if (status == Transport::Status::stopped) return broken("stopped");
      if (status != Transport::Status::ok) return broken("the connection was closed");
      reader_.feed({buffer.data(), bytes});
    }
  }

 private:
  struct Sent {
    std::string name, channel;
  };

  CommandInfo info(const Sent& sent) const {
    return {.store = "redis", .endpoint = display_, .name = sent.name, .key = sent.channel};
  }

  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const {
    return tl::unexpected(StoreError{kind, fmt::format("{}: {}", display_, why)});
  }

  StoreResult<Reply> greet_with(Transport& transport, ReplyReader& reader, Command command,
                                const std::stop_token& stop) {
    auto reply = exchange_once(transport, reader, command, timeout_, stop);
    if (!reply) return fail(StoreError::Kind::not_sent, reply.error());
    if (reply->type != Reply::Type::error) return *std::move(reply);
    const bool secret = command[0] == "AUTH";
    return fail(StoreError::Kind::rejected, secret ? without_secret(reply->text) : reply->text);
  }

  StoreResult<void> send(std::string_view name, const std::string& channel) {
    const std::scoped_lock lock(sending_);
    if (!transport_) return fail(StoreError::Kind::not_sent, "not connected");
    const Sent& sent = under_way_.emplace_back(Sent{std::string(name), channel});
    if (env_.before_command(info(sent)) == CommandFate::drop) {
      cut_ = true;
      return fail(StoreError::Kind::not_sent, "the connection was cut");
    }
    std::string bytes;
    const std::array<std::string_view, 2> words{name, channel};
    append_command(bytes, words);
    if (transport_->send(bytes, timeout_) == Transport::Status::ok) return {};
    cut_ = true;
    return fail(StoreError::Kind::unanswered, "the connection was closed");
  }

  bool is_cut() {
    const std::scoped_lock lock(sending_);
    return cut_;
  }

  StoreResult<std::optional<Push>> pushed(const Reply& reply) {
    if (reply.type != Reply::Type::array || reply.elements.size() != 3) {
      return broken(reply.type == Reply::Type::error ? reply.text
                                                     : "an answer that is not a message");
    }
    Push push{.channel = reply.elements[1].text};
    const std::string& kind = reply.elements[0].text;
    if (kind == "message") return push;
    push.kind = kind == "subscribe" ? Push::Kind::subscribed : Push::Kind::unsubscribed;
    const std::scoped_lock lock(sending_);
    if (!under_way_.empty()) {
      env_.after_command(info(under_way_.front()), CommandEnd::answered);
      under_way_.pop_front();
    }
    return push;
  }

  tl::unexpected<StoreError> broken(std::string_view why) {
    const std::scoped_lock lock(sending_);
    for (const Sent& sent : under_way_) env_.after_command(info(sent), CommandEnd::lost);
    under_way_.clear();
    transport_.reset();
    cut_ = false;
    return fail(StoreError::Kind::unanswered, why);
  }

  const Endpoint endpoint_;
  const std::string display_;
  const Duration timeout_;
  Env& env_;
  std::mutex sending_;  ///< guards sending, and changes of `transport_`
  std::unique_ptr<Transport> transport_;
  ReplyReader reader_;
  std::deque<Sent> under_way_;
  bool cut_ = false;  ///< while sending: the receiving thread closes it
};

}  // namespace

std::unique_ptr<Subscriber> make_hiredis_subscriber(const Endpoint& endpoint,
                                                    Duration command_timeout, Env& env) {
  return std::make_unique<HiredisSubscriber>(endpoint, command_timeout, env);
}

}  // namespace lockbench::redis
