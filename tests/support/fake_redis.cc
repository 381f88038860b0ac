#include "tests/support/fake_redis.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>

#include "strategies/redis/client/protocol.h"
#include "strategies/redis/scripts.h"

namespace lockbench::redis {
namespace {

using Words = std::vector<std::string>;

bool is_script(const std::vector<std::string>& command) {
  return command[0] == "EVAL" || command[0] == "EVALSHA";
}

/// The script that EVAL or EVALSHA names; null if it is none of ours.
const Script* script_of(const std::vector<std::string>& command) {
  for (const Script* script : scripts::kAll) {
    if (command[1] == script->sha1 || command[1] == script->source) return script;
  }
  return nullptr;
}

std::string as_line(Words command) {
  if (is_script(command)) {
    if (const Script* script = script_of(command)) command[1] = script->name;
  }
  return fmt::format("{}", fmt::join(command, " "));
}

}  // namespace

std::vector<std::string> FakeRedis::take_commands() { return std::exchange(commands_, {}); }

std::optional<std::string> FakeRedis::value(const std::string& key) {
  const Reply seen = ask({"GET", key});
  if (seen.type == Reply::Type::error) return "not a string";
  return seen.is_nil() ? std::nullopt : std::optional(seen.text);
}

std::optional<Duration> FakeRedis::ttl(const std::string& key) {
  const std::int64_t left = ask({"PTTL", key}).integer;
  return left < 0 ? std::nullopt : std::optional<Duration>(std::chrono::milliseconds(left));
}

void FakeRedis::set(const std::string& key, std::string value, std::optional<Duration> ttl) {
  Words command{"SET", key, std::move(value)};
  if (ttl) command.insert(command.end(), {"PX", std::to_string(ceil_milliseconds(*ttl))});
  (void)ask(command);
}

StoreResult<Reply> FakeRedis::arrive(const Words& command, Session& session) {
  std::unique_lock lock(mutex_);
  const auto failure = failures_.find(++arrivals_);
  const bool fails = failure != failures_.end();
  if (fails && failure->second == Failure::not_sent) {
    return tl::unexpected(StoreError{StoreError::Kind::not_sent, "told to break"});
  }
  if (fails && failure->second == Failure::request_lost) {
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, "told to lose the request"});
  }
  const std::string line = as_line(command);
  commands_.push_back(line);
  if (fails && failure->second == Failure::rejected) {
    session.aborted = session.in_transaction;
    return tl::unexpected(StoreError{StoreError::Kind::rejected, "ERR told to reject"});
  }
  if (on_arrival_) {
    // It may wait, and another fiber of this thread arrives meanwhile.
    lock.unlock();
    on_arrival_(line);
    lock.lock();
  }
  Reply reply = execute(command, session);
  if (fails) {
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, "told to lose the answer"});
  }
  if (reply.type == Reply::Type::error) {
    return tl::unexpected(StoreError{StoreError::Kind::rejected, reply.text, reply.code});
  }
  return reply;
}

Reply FakeRedis::execute(const Words& command, Session& session) {
  const std::vector<std::string_view> words(command.begin(), command.end());
  // Its replicas are always up to date.
  if (words[0] == "WAIT") {
    return {.type = Reply::Type::integer, .integer = std::stoll(command.at(1))};
  }
  // On this clock no time passes between two commands, so a key goes at the end of its TTL: a real
  // server keeps it for the rest of that millisecond.
  for (const std::string_view word : words) {
    Session own;
    const std::string_view ttl[] = {"PTTL", word}, remove[] = {"DEL", word};
    if (data_.execute(own, ttl, clock_.wall_now()).is_integer(0)) {
      (void)data_.execute(own, remove, clock_.wall_now());
    }
  }
  return data_.execute(session, words, clock_.wall_now());
}

Reply FakeRedis::ask(const Words& command) {
  Session session;
  return execute(command, session);
}

// Its connections.

/// Like the real connection: when it breaks, all unanswered commands fail, and so do commands
/// queued before the last of these failures has been fetched.
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
      StoreResult<Reply> result = server_.arrive(pending.words, session_);
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
    // Looking takes time, so that a polling caller makes progress.
    constexpr Duration kLook = std::chrono::microseconds(50);
    if (!answer_is_there()) {
      server_.clock_.advance(std::min(std::max(longest, kLook), until_ready()));
    }
    if (!answer_is_there()) return std::nullopt;
    return take();
  }

  int descriptor() const override {
    // Always readable: nothing waits in real time.
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
    std::optional<StoreResult<Reply>> result;  ///< nothing until the command is sent
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
    session_ = {};
    for (Pending& pending : pendings_) {
      if (!pending.result) pending.result = failure(kind, why);
    }
  }

  FakeRedis& server_;
  const std::string display_;
  Env& env_;
  bool connected_ = false;
  std::optional<TimePoint> connected_at_;  ///< of a connect under way
  FakeRedis::Session session_;
  std::deque<Pending> pendings_;
};

/// Pub/sub needs a second thread, but tests have one: it never connects.
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
