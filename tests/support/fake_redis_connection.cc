// How one speaks to FakeRedis.

#include <fcntl.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "tests/support/fake_redis.h"
#include "tests/support/fake_replies.h"

namespace lockbench::redis {

using Words = std::vector<std::string>;

/// As the real connection: whatever breaks it takes along all commands that have no answer yet,
/// and those that are queued until the last of these failures has been fetched.
class FakeRedisConnection : public Connection {
 public:
  FakeRedisConnection(FakeRedis& server, const Endpoint& endpoint, Env& env)
      : server_(server), display_(endpoint.display()), env_(env) {}

  const std::string& display() const override { return display_; }

  StoreResult<void> connect(const std::stop_token&) override {
    if (!connected_ && server_.refuses_) {
      return failure(StoreError::Kind::not_sent, "connection refused");
    }
    connected_ = true;
    return {};
  }

  StoreResult<bool> connect_within(Duration longest, const std::stop_token& stop) override {
    if (!connected_ && server_.connect_time_ > Duration::zero()) {
      const TimePoint now = server_.clock_.now();
      if (!connected_at_) connected_at_ = now + server_.connect_time_;
      const Duration left = std::max(*connected_at_ - now, Duration::zero());
      server_.clock_.advance(std::min(left, longest));
      if (left > longest) return false;
    }
    connected_at_.reset();
    return connect(stop).map([] { return true; });
  }

  void queue(Command command, std::string_view name, Duration blocks_for) override {
    Pending pending{.words = Words(command.begin(), command.end())};
    pending.blocks = blocks_for > Duration::zero();
    pending.name = name.empty() ? pending.words[0] : name;
    const bool broken =
        !pendings_.empty() && pendings_.back().result && is_broken(*pendings_.back().result);
    if (broken) pending.result = pendings_.back().result;
    pendings_.push_back(std::move(pending));
    if (env_.before_command(info(pendings_.back())) == CommandFate::drop) {
      break_connection(StoreError::Kind::not_sent, "the connection was cut");
    }
  }

  void flush(const std::stop_token& stop) override {
    bool travelled = false;
    for (Pending& pending : pendings_) {
      if (pending.result) continue;
      if (const auto connected = connect(stop); !connected) {
        return break_connection(StoreError::Kind::not_sent, "connection refused");
      }
      if (!std::exchange(travelled, true)) server_.clock_.advance(server_.round_trip_ / 2);
      StoreResult<Reply> result = server_.arrive(pending.words, transaction_);
      if (!result) result.error().message = display_ + ": " + result.error().message;
      pending.result = result;
      pending.ready_at = server_.clock_.now() + server_.answer_delay_;
      if (is_broken(*pending.result)) {
        return break_connection(result.error().kind, "the one before was lost");
      }
    }
    if (travelled) server_.clock_.advance(server_.round_trip_ - server_.round_trip_ / 2);
  }

  StoreResult<Reply> receive(const std::stop_token& stop) override {
    flush(stop);
    server_.clock_.advance_to(std::max(server_.clock_.now(), pendings_.at(0).ready_at));
    return take();
  }

  std::optional<StoreResult<Reply>> receive_within(Duration longest,
                                                   const std::stop_token& /*stop*/) override {
    // Looking takes time, so that who looks again and again gets somewhere.
    constexpr Duration kLook = std::chrono::microseconds(50);
    if (!answer_is_there()) {
      server_.clock_.advance(std::min(std::max(longest, kLook), until_ready()));
    }
    if (!answer_is_there()) return std::nullopt;
    return take();
  }

  int descriptor() const override {
    // Always ready to be read: nobody waits in real time.
    static const int always_ready = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    return pendings_.empty() || answer_is_there() ? -1 : always_ready;
  }

  void close() noexcept override {
    connected_ = false;
    for (Pending& pending : pendings_) {
      if (pending.ready_at <= server_.clock_.now()) continue;
      pending.result = failure(StoreError::Kind::unanswered, "closed");
      pending.ready_at = {};
    }
  }

 private:
  Duration until_ready() const { return pendings_.at(0).ready_at - server_.clock_.now(); }
  bool answer_is_there() const { return until_ready() <= Duration::zero(); }

  StoreResult<Reply> take() {
    Pending pending = std::move(pendings_.at(0));
    pendings_.pop_front();
    const bool answered = !is_broken(*pending.result);
    const CommandFate fate =
        env_.after_command(info(pending), answered ? CommandEnd::answered : CommandEnd::lost);
    if (!answered || fate == CommandFate::proceed) return *pending.result;
    for (Pending& later : pendings_) later.result.reset();
    break_connection(StoreError::Kind::unanswered, "the answer was lost");
    return failure(StoreError::Kind::unanswered, "the answer was lost");
  }

  struct Pending {
    Words words;
    std::string name;
    bool blocks = false;
    std::optional<StoreResult<Reply>> result;  ///< nothing until it is sent
    TimePoint ready_at{};
  };

  static bool is_broken(const StoreResult<Reply>& result) {
    return !result && result.error().kind != StoreError::Kind::rejected;
  }

  CommandInfo info(const Pending& pending) const {
    const std::size_t place = is_script(pending.words) ? 3 : 1;
    const auto key =
        place < pending.words.size() ? std::string_view(pending.words[place]) : std::string_view();
    return {.store = "redis",
            .endpoint = display_,
            .name = pending.name,
            .key = key,
            .blocks = pending.blocks};
  }

  tl::unexpected<StoreError> failure(StoreError::Kind kind, const std::string& why) const {
    return tl::unexpected(StoreError{kind, display_ + ": " + why});
  }

  void break_connection(StoreError::Kind kind, const std::string& why) {
    connected_ = false;
    transaction_ = {};
    for (Pending& pending : pendings_) {
      if (!pending.result) pending.result = failure(kind, why);
    }
  }

  FakeRedis& server_;
  const std::string display_;
  Env& env_;
  bool connected_ = false;
  std::optional<TimePoint> connected_at_;  ///< what is under way
  FakeRedis::Transaction transaction_;
  std::deque<Pending> pendings_;
};

/// Pub/sub needs a second thread, and here there is one: it never connects.
class DeafSubscriber : public Subscriber {
 public:
  explicit DeafSubscriber(const Endpoint& endpoint) : display_(endpoint.display()) {}

  StoreResult<void> connect(const std::stop_token&) override { return refusal(); }
  StoreResult<void> subscribe(const std::string&) override { return refusal(); }
  StoreResult<void> unsubscribe(const std::string&) override { return refusal(); }
  StoreResult<std::optional<Push>> receive(Duration, const std::stop_token&) override {
    return refusal();
  }

 private:
  tl::unexpected<StoreError> refusal() const {
    return tl::unexpected(StoreError{StoreError::Kind::not_sent, display_ + ": no subscribers"});
  }

  const std::string display_;
};

std::unique_ptr<Connection> FakeRedis::make(const Endpoint& endpoint, const Timeouts&, Env& env) {
  return std::make_unique<FakeRedisConnection>(*this, endpoint, env);
}

std::unique_ptr<Subscriber> FakeRedis::make_subscriber(const Endpoint& endpoint, const Timeouts&,
                                                       Env&) {
  return std::make_unique<DeafSubscriber>(endpoint);
}

}  // namespace lockbench::redis
