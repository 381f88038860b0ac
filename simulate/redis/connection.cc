#include "simulate/redis/connection.h"

#include <algorithm>
#include <stdexcept>

#include "strategies/redis/client/protocol.h"

namespace lockbench::simulate {
namespace {

using redis::Endpoint;

std::shared_ptr<Wire> open_wire(Host& host, RedisNode& node, std::uint32_t database) {
  auto wire = std::make_shared<Wire>(host, node, node.number, node.region, database);
  std::erase_if(host.wires, [](const auto& other) { return other.expired(); });
  host.wires.push_back(wire);
  node.network().send(*wire, Way::to_server, host.resumes(host.world().now()),
                      [wire] { wire->node.accept(wire); });
  return wire;
}

void send(const std::shared_ptr<Wire>& wire, std::vector<CommandWords> commands) {
  Host& host = wire->host;
  wire->node.network().send(*wire, Way::to_server, host.resumes(host.world().now()),
                            [wire, commands = std::move(commands)]() mutable {
                              wire->node.arrive(wire, std::move(commands));
                            });
}

/// Waits on a client's machine until `done()`; false if `longest` or a stop ended it before. After
/// a stop it goes on for `after_stop`.
template <class Done>
bool wait_until(Host& host, Event*& waiting, Event& event, Duration longest, Duration after_stop,
                std::stop_token stop, const Done& done) {
  World& world = host.world();
  TimePoint until = world.now() + longest;
  waiting = &event;
  while (!done() && !host.dead() && world.now() < until) {
    if (world.carrier().wait(&event, until, stop) == WaitResult::stopped) {
      until = std::min(until, world.now() + after_stop);
      stop = {};
    }
  }
  waiting = nullptr;
  host.pass_pause();
  return done();
}

}  // namespace

/// As the real connection, on a wire instead of a socket.
class SimulatedConnection final : public redis::Connection {
 public:
  SimulatedConnection(SimulatedFactory& factory, Host& host, RedisNode& node,
                      const Endpoint& endpoint, const Timeouts& timeouts, Env& env)
      : factory_(factory),
        host_(host),
        node_(node),
        display_(endpoint.display()),
        database_(static_cast<std::uint32_t>(endpoint.database)),
        timeouts_(timeouts),
        env_(env),
        descriptor_(++factory.last_descriptor_),
        event_(host.world().carrier().make_event()) {
    factory_.connections_[descriptor_] = this;
  }
  SimulatedConnection(const SimulatedConnection&) = delete;
  SimulatedConnection& operator=(const SimulatedConnection&) = delete;
  ~SimulatedConnection() override {
    if (wire_) {
      wire_->waiting = nullptr;
      wire_->close();
    }
    factory_.connections_.erase(descriptor_);
  }

  const std::string& display() const override { return display_; }

  StoreResult<void> connect(const std::stop_token& stop) override {
    const auto connected = connect_within(timeouts_.answer, stop);
    if (!connected) return tl::unexpected(connected.error());
    if (*connected) return {};
    close();
    return fail(StoreError::Kind::not_sent, "no connection within the timeout");
  }

  StoreResult<bool> connect_within(Duration longest, const std::stop_token& stop) override {
    if (is_open()) return true;
    if (host_.dead()) return fail(StoreError::Kind::not_sent, "the client is dead");
    if (!wire_ || wire_->state == Wire::State::broken) {
      wire_ = open_wire(host_, node_, database_);
      connecting_since_ = host_.world().now();
    }
    wait(longest, stop, [this] { return wire_->state != Wire::State::connecting; });
    if (wire_->state == Wire::State::open) {
      ++times_connected_;
      return true;
    }
    if (wire_->state == Wire::State::broken) return fail(StoreError::Kind::not_sent, wire_->why);
    if (host_.world().now() - connecting_since_ < timeouts_.answer) return false;
    close();
    return fail(StoreError::Kind::not_sent, "no connection within the timeout");
  }

  void queue(redis::Command command, std::string_view name, Duration blocks_for) override {
    // The rest of a pipeline must not run on a new connection without the commands before it.
    const bool broken = !pendings_.empty() && pendings_.back().broken();
    const Pending& pending = pendings_.emplace_back(
        Pending{.name = std::string(name.empty() ? command[0] : name),
                .key = std::string(redis::key_of(command)),
                .blocks_for = blocks_for,
                .state = broken ? Pending::State::never_sent : Pending::State::queued});
    if (env_.before_command(info(pending)) == CommandFate::drop) {
      return break_connection("the connection was cut");
    }
    if (!broken) out_.emplace_back(command);
  }

  void flush(const std::stop_token& stop) override {
    if (out_.empty()) return;
    if (is_open() && wire_->arrived.size() > awaited()) break_connection("an answer too many");
    if (auto connected = connect(stop); !connected) {
      return break_connection(connected.error().message);
    }
    change(Pending::State::queued, Pending::State::sent);
    send(wire_, std::exchange(out_, {}));
  }

  StoreResult<Reply> receive(const std::stop_token& stop) override {
    flush(stop);
    if (auto reply = take(timeouts_.answer + pendings_[0].blocks_for, stop))
      return *std::move(reply);
    const StoreResult<Reply> late = fail(StoreError::Kind::unanswered, "no answer in time");
    break_connection(late.error().message);
    return settled(late);
  }

  std::optional<StoreResult<Reply>> receive_within(Duration longest,
                                                   const std::stop_token& stop) override {
    return take(longest, stop);
  }

  int descriptor() const override {
    const bool known = pendings_.empty() || pendings_[0].broken() || has_input();
    return known || !is_open() ? -1 : descriptor_;
  }
  bool has_input() const {
    return wire_ && (!wire_->arrived.empty() || wire_->state == Wire::State::broken);
  }

  std::uint64_t times_connected() const override { return times_connected_; }
  void close() noexcept override { break_connection("closed"); }

 private:
  /// A command still without an answer.
  struct Pending {
    enum class State { queued, sent, never_sent, unanswered };
    std::string name, key;
    Duration blocks_for{};
    State state = State::queued;

    bool broken() const { return state == State::never_sent || state == State::unanswered; }
  };

  bool is_open() const { return wire_ && wire_->state == Wire::State::open; }
  std::size_t awaited() const {
    return static_cast<std::size_t>(
        std::ranges::count(pendings_, Pending::State::sent, &Pending::state));
  }

  template <class Done>
  bool wait(Duration longest, const std::stop_token& stop, const Done& done) {
    return wait_until(host_, wire_->waiting, *event_, longest, timeouts_.after_stop, stop, done);
  }

  std::optional<StoreResult<Reply>> take(Duration longest, const std::stop_token& stop) {
    if (pendings_[0].state == Pending::State::queued) return std::nullopt;
    if (!pendings_[0].broken()) {
      const bool there = wait(longest, stop, [this] { return has_input(); });
      if (!there && !host_.dead()) return std::nullopt;
      if (wire_->arrived.empty()) break_connection(wire_->why);
    }
    if (pendings_[0].broken()) {
      const bool sent = pendings_[0].state == Pending::State::unanswered;
      return settled(
          fail(sent ? StoreError::Kind::unanswered : StoreError::Kind::not_sent, broken_reason_));
    }
    Reply reply = std::move(wire_->arrived.front());
    wire_->arrived.pop_front();
    if (reply.type != Reply::Type::error) return settled(std::move(reply));
    return settled(failure_at(display_, StoreError::Kind::rejected, reply.text, reply.code));
  }

  static bool is_answer(const StoreResult<Reply>& reply) {
    return reply || reply.error().kind == StoreError::Kind::rejected;
  }

  StoreResult<Reply> settled(StoreResult<Reply> reply) {
    const Pending pending = std::move(pendings_.front());
    pendings_.pop_front();
    const bool answered = is_answer(reply);
    const bool in_vain = pending.blocks_for > Duration::zero() && reply && reply->is_nil();
    const CommandEnd end = !answered ? CommandEnd::lost
                           : in_vain ? CommandEnd::in_vain
                                     : CommandEnd::answered;
    if (env_.after_command(info(pending), end) == CommandFate::drop && answered) {
      break_connection("the answer was lost");
      return fail(StoreError::Kind::unanswered, "the answer was lost");
    }
    return reply;
  }

  CommandInfo info(const Pending& pending) const {
    return {.store = "redis",
            .endpoint = display_,
            .name = pending.name,
            .key = pending.key,
            .blocks = pending.blocks_for > Duration::zero() && pending.name != "WAIT"};
  }

  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const {
    return failure_at(display_, kind, why);
  }

  void change(Pending::State from, Pending::State to) {
    for (Pending& pending : pendings_) {
      if (pending.state == from) pending.state = to;
    }
  }

  void break_connection(std::string_view why) {
    broken_reason_ = why;
    if (wire_) wire_->close();
    wire_.reset();
    out_.clear();
    change(Pending::State::queued, Pending::State::never_sent);
    change(Pending::State::sent, Pending::State::unanswered);
  }

  SimulatedFactory& factory_;
  Host& host_;
  RedisNode& node_;
  const std::string display_;
  const std::uint32_t database_;
  const Timeouts timeouts_;
  Env& env_;
  const int descriptor_;
  const std::unique_ptr<Event> event_;
  std::shared_ptr<Wire> wire_;
  TimePoint connecting_since_{};
  std::vector<CommandWords> out_;
  std::deque<Pending> pendings_;  ///< oldest first
  std::string broken_reason_;
  std::uint64_t times_connected_ = 0;
};

namespace {

class SimulatedSubscriber final : public redis::Subscriber {
 public:
  SimulatedSubscriber(Host& host, RedisNode& node, const Endpoint& endpoint,
                      const Timeouts& timeouts, Env& env)
      : host_(host),
        node_(node),
        display_(endpoint.display()),
        timeouts_(timeouts),
        env_(env),
        event_(host.world().carrier().make_event()) {}
  SimulatedSubscriber(const SimulatedSubscriber&) = delete;
  SimulatedSubscriber& operator=(const SimulatedSubscriber&) = delete;
  ~SimulatedSubscriber() override { cut("closed"); }

  StoreResult<void> connect(const std::stop_token& stop) override {
    if (is_open()) return {};
    if (host_.dead()) return fail(StoreError::Kind::not_sent, "the client is dead");
    wire_ = open_wire(host_, node_, 0);
    wait(timeouts_.answer, stop, [this] { return wire_->state != Wire::State::connecting; });
    if (is_open()) return {};
    cut("no connection");
    return fail(StoreError::Kind::not_sent, "no connection");
  }
  StoreResult<void> subscribe(const std::string& channel) override {
    return request("SUBSCRIBE", channel);
  }
  StoreResult<void> unsubscribe(const std::string& channel) override {
    return request("UNSUBSCRIBE", channel);
  }

  StoreResult<std::optional<redis::Push>> receive(Duration longest,
                                                  const std::stop_token& stop) override {
    if (!wire_) return fail(StoreError::Kind::not_sent, "not connected");
    wait(longest, stop,
         [this] { return !wire_->arrived.empty() || wire_->state != Wire::State::open; });
    if (wire_->arrived.empty()) {
      if (is_open() && !host_.dead()) return std::nullopt;
      cut("the connection was closed");
      return fail(StoreError::Kind::unanswered, "the connection was closed");
    }
    const auto push = redis::read_push(wire_->arrived.front());
    wire_->arrived.pop_front();
    if (!push) return fail(StoreError::Kind::unanswered, push.error());
    if (push->kind != redis::Push::Kind::message && !under_way_.empty()) {
      env_.after_command(info(under_way_.front()), CommandEnd::answered);
      under_way_.pop_front();
    }
    return *push;
  }

 private:
  using Sent = std::pair<std::string_view, std::string>;  ///< command, channel

  bool is_open() const { return wire_ && wire_->state == Wire::State::open; }
  CommandInfo info(const Sent& sent) const {
    return {.store = "redis", .endpoint = display_, .name = sent.first, .key = sent.second};
  }
  template <class Done>
  void wait(Duration longest, const std::stop_token& stop, const Done& done) {
    // A stop ends it at once.
    wait_until(host_, wire_->waiting, *event_, longest, Duration::zero(), stop, done);
  }

  StoreResult<void> request(std::string_view name, const std::string& channel) {
    if (!is_open()) return fail(StoreError::Kind::not_sent, "not connected");
    const Sent& sent = under_way_.emplace_back(name, channel);
    if (env_.before_command(info(sent)) == CommandFate::drop) {
      wire_->close();
      return fail(StoreError::Kind::not_sent, "the connection was cut");
    }
    const std::array<std::string_view, 2> words{name, channel};
    std::vector<CommandWords> commands;
    commands.emplace_back(words);
    send(wire_, std::move(commands));
    return {};
  }

  void cut(std::string_view /*why*/) {
    for (const Sent& sent : under_way_) env_.after_command(info(sent), CommandEnd::lost);
    under_way_.clear();
    if (wire_) wire_->close();
    wire_.reset();
  }

  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const {
    return failure_at(display_, kind, why);
  }

  Host& host_;
  RedisNode& node_;
  const std::string display_;
  const Timeouts timeouts_;
  Env& env_;
  const std::unique_ptr<Event> event_;
  std::shared_ptr<Wire> wire_;
  std::deque<Sent> under_way_;
};

}  // namespace

RedisNode& SimulatedFactory::node_of(const Endpoint& endpoint) const {
  const auto found = std::ranges::find_if(
      nodes_, [&](const auto& node) { return node->address == endpoint.display(); });
  if (found == nodes_.end()) throw std::invalid_argument("no server at " + endpoint.display());
  return **found;
}

std::unique_ptr<redis::Connection> SimulatedFactory::make(const Endpoint& endpoint,
                                                          const Timeouts& timeouts, Env& env) {
  return std::make_unique<SimulatedConnection>(*this, host_, node_of(endpoint), endpoint, timeouts,
                                               env);
}

std::unique_ptr<redis::Subscriber> SimulatedFactory::make_subscriber(const Endpoint& endpoint,
                                                                     const Timeouts& timeouts,
                                                                     Env& env) {
  return std::make_unique<SimulatedSubscriber>(host_, node_of(endpoint), endpoint, timeouts, env);
}

bool SimulatedFactory::look(std::span<pollfd> descriptors) const {
  bool any = host_.dead();
  for (pollfd& one : descriptors) {
    const auto found = connections_.find(one.fd);
    const bool ready = found == connections_.end() || found->second->has_input();
    one.revents = ready ? POLLIN : 0;
    any |= ready;
  }
  return any;
}

void SimulatedFactory::poll(std::span<pollfd> descriptors, Duration longest,
                            const std::stop_token& stop) {
  World& world = host_.world();
  const TimePoint until = world.now() + std::max(longest, Duration::zero());
  const std::unique_ptr<Event> event = world.carrier().make_event();
  host_.polling = event.get();
  while (!look(descriptors) && world.now() < until && !stop.stop_requested()) {
    world.carrier().wait(event.get(), until, stop);
  }
  host_.polling = nullptr;
  host_.pass_pause();
  look(descriptors);
}

}  // namespace lockbench::simulate
