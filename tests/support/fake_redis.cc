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

Reply integer(std::int64_t value) { return {.type = Reply::Type::integer, .integer = value}; }

Reply text(Reply::Type type, std::string value) { return {.type = type, .text = std::move(value)}; }

Reply ok() { return text(Reply::Type::status, "OK"); }
Reply error(std::string message) {
  const StoreError::Code code = error_code(message);
  return {.type = Reply::Type::error, .text = std::move(message), .code = code};
}

bool is_script(const std::vector<std::string>& command) {
  return command[0] == "EVAL" || command[0] == "EVALSHA";
}

/// The script that EVAL or EVALSHA names; null if it is none of ours.
const Script* script_of(const std::vector<std::string>& command) {
  for (const Script* script :
       {&scripts::release_if_token, &scripts::renew_if_token, &scripts::reentrant_acquire,
        &scripts::reentrant_release, &scripts::reentrant_renew, &scripts::fenced_acquire}) {
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
  const Entry* entry = find(key);
  return entry == nullptr ? std::nullopt : std::optional(entry->value);
}

std::optional<Duration> FakeRedis::ttl(const std::string& key) {
  const Entry* entry = find(key);
  if (entry == nullptr || entry->expires == WallTime::max()) return std::nullopt;
  return entry->expires - clock_.wall_now();
}

void FakeRedis::set(const std::string& key, std::string value, std::optional<Duration> ttl) {
  entries_[key] = {.value = std::move(value),
                   .expires = ttl ? clock_.wall_now() + *ttl : WallTime::max()};
}

StoreResult<Reply> FakeRedis::arrive(const Words& command, Transaction& transaction) {
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
    transaction.aborted = transaction.open;
    return tl::unexpected(StoreError{StoreError::Kind::rejected, "ERR told to reject"});
  }
  if (on_arrival_) {
    // It may wait, and another fiber of this thread arrives meanwhile.
    lock.unlock();
    on_arrival_(line);
    lock.lock();
  }
  Reply reply = execute(command, transaction);
  if (fails) {
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, "told to lose the answer"});
  }
  if (reply.type == Reply::Type::error) {
    return tl::unexpected(StoreError{StoreError::Kind::rejected, reply.text, reply.code});
  }
  return reply;
}

Reply FakeRedis::execute(const Words& command, Transaction& transaction) {
  if (command[0] == "MULTI") {
    transaction = {.open = true};
    return ok();
  }
  if (command[0] == "EXEC") {
    const Transaction done = std::exchange(transaction, {});
    if (!done.open) return error("ERR EXEC without MULTI");
    if (done.aborted) return error("EXECABORT Transaction discarded because of previous errors.");
    Reply replies;
    replies.type = Reply::Type::array;
    for (const Words& queued : done.queued) replies.elements.push_back(execute_one(queued));
    return replies;
  }
  if (!transaction.open) return execute_one(command);
  transaction.queued.push_back(command);
  return text(Reply::Type::status, "QUEUED");
}

Reply FakeRedis::execute_one(const Words& command) {
  const std::string& name = command[0];
  if (is_script(command)) return execute_script(command);
  if (name == "INFO") return text(Reply::Type::string, "# Server\r\nredis_version:7.0.15\r\n");
  if (name == "DEL" || name == "UNLINK") return remove(command);

  const std::string& key = command.at(1);
  const Entry* entry = find(key);
  if (name == "SET") return execute_set(command);
  if (name == "SETNX") {
    if (entry != nullptr) return integer(0);
    set(key, command.at(2));
    return integer(1);
  }
  if (name == "GET" || name == "GETSET") {
    Reply seen = entry == nullptr ? Reply() : text(Reply::Type::string, entry->value);
    if (name == "GETSET") set(key, command.at(2));
    return seen;
  }
  if (name == "WAIT") return integer(std::stoll(command.at(1)));
  if (name == "EXPIRE") return expire(key, std::chrono::seconds(std::stoll(command.at(2))));
  if (name == "PEXPIRE") return expire(key, std::chrono::milliseconds(std::stoll(command.at(2))));
  if (name == "PTTL") {
    if (entry == nullptr) return integer(-2);
    const auto left = ttl(key);
    return integer(left ? ceil_milliseconds(*left) : -1);
  }
  return error("ERR unknown command '" + name + "'");
}

/// SET key value [NX] [PX milliseconds] [EX seconds] [GET]
Reply FakeRedis::execute_set(const Words& command) {
  const std::string& key = command.at(1);
  std::optional<Duration> ttl;
  bool only_new = false, wants_old = false;
  for (std::size_t i = 3; i < command.size(); ++i) {
    if (command[i] == "NX") {
      only_new = true;
    } else if (command[i] == "GET") {
      wants_old = true;
    } else if ((command[i] == "PX" || command[i] == "EX") && i + 1 < command.size()) {
      const int unit = command[i] == "PX" ? 1 : 1000;
      ttl = std::chrono::milliseconds(std::stoll(command[++i]) * unit);
      if (*ttl <= Duration::zero()) return error("ERR invalid expire time in 'set' command");
    } else {
      return error("ERR syntax error");
    }
  }
  const Entry* entry = find(key);
  if (only_new && entry != nullptr) return {};
  Reply old = entry == nullptr ? Reply() : text(Reply::Type::string, entry->value);
  set(key, command.at(2), ttl);
  return wants_old ? old : ok();
}

Reply FakeRedis::expire(const std::string& key, Duration ttl) {
  Entry* entry = find(key);
  if (entry == nullptr) return integer(0);
  entry->expires = clock_.wall_now() + ttl;
  return integer(1);
}

Reply FakeRedis::remove(const Words& command) {
  std::int64_t removed = 0;
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (find(command[i]) == nullptr) continue;
    entries_.erase(command[i]);
    ++removed;
  }
  return integer(removed);
}

FakeRedis::Entry* FakeRedis::find(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  if (found->second.expires > clock_.wall_now()) return &found->second;
  entries_.erase(found);
  return nullptr;
}

/// EVALSHA sha 1 key argument..., or EVAL with the source in its place
Reply FakeRedis::execute_script(const Words& command) {
  const Script* script = script_of(command);
  if (script == nullptr) return error("ERR not a script of this fake's");
  const std::string name(script->name);
  if (command[0] == "EVAL") scripts_.insert(name);
  if (!scripts_.contains(name)) return error("NOSCRIPT No matching script. Please use EVAL.");

  const std::string& key = command.at(3);
  const auto ttl = [&] { return std::chrono::milliseconds(std::stoll(command.back())); };
  if (script == &scripts::fenced_acquire) {
    return acquire_fenced(key, command.at(4), command.at(5), ttl());
  }
  const std::string& owner = command.at(4);
  if (script == &scripts::reentrant_acquire) return acquire_reentrant(key, owner, ttl());
  if (script == &scripts::reentrant_release) {
    return release_reentrant(key, owner, std::chrono::milliseconds(std::stoll(command.at(5))));
  }
  const Entry* entry = find(key);
  const bool in_hash = script == &scripts::reentrant_renew;
  const bool mine =
      entry != nullptr && (in_hash ? entry->counts.contains(owner) : entry->value == owner);
  if (!mine) return integer(0);
  if (script == &scripts::release_if_token) return remove({"DEL", key});
  return expire(key, ttl());
}

Reply FakeRedis::acquire_reentrant(const std::string& key, const std::string& owner, Duration ttl) {
  Entry* entry = find(key);
  if (entry != nullptr && !entry->counts.contains(owner)) return execute_one({"PTTL", key});
  if (entry == nullptr) entry = &(entries_[key] = Entry{.value = "a hash"});
  ++entry->counts[owner];
  expire(key, ttl);
  return {};
}

Reply FakeRedis::release_reentrant(const std::string& key, const std::string& owner, Duration ttl) {
  Entry* entry = find(key);
  if (entry == nullptr || !entry->counts.contains(owner)) return {};
  if (--entry->counts[owner] == 0) return remove({"DEL", key});
  expire(key, ttl);
  return integer(0);
}

Reply FakeRedis::acquire_fenced(const std::string& key, const std::string& counter,
                                const std::string& token, Duration ttl) {
  if (find(key) != nullptr) return {};
  set(key, token, ttl);
  const std::int64_t last = value(counter) ? std::stoll(*value(counter)) : 0;
  set(counter, std::to_string(last + 1));
  return integer(last + 1);
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
    transaction_ = {};
    for (Pending& pending : pendings_) {
      if (!pending.result) pending.result = failure(kind, why);
    }
  }

  FakeRedis& server_;
  const std::string display_;
  Env& env_;
  bool connected_ = false;
  std::optional<TimePoint> connected_at_;  ///< of a connect under way
  FakeRedis::Transaction transaction_;
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
