#include "strategies/redis/client/shared_connections.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "strategies/redis/client/sentinel.h"
#include "strategies/redis/client/slot_queue.h"

namespace lockbench::redis {
namespace {

// Sentinels, the server, and two steps of the greeting: each has the whole time-out.
constexpr int kConnectingSteps = 4;
// In place of a descriptor, where notify_by() is to be used.
constexpr int kAwaited = std::numeric_limits<int>::max();

/// One client's part of a shared link.
class SharedConnection : public Connection, private LinkUser {
 public:
  SharedConnection(SharedLink& link, ConnectionFactory& own, Env& env)
      : link_(link),
        factory_(own),
        env_(env),
        own_event_(Carrier::current().make_event()),
        event_(own_event_.get()) {}
  SharedConnection(const SharedConnection&) = delete;
  SharedConnection& operator=(const SharedConnection&) = delete;
  ~SharedConnection() override { link_.leave(*this); }

  const std::string& display() const override { return link_.display(); }

  StoreResult<void> connect(const std::stop_token& stop) override {
    auto connected = connect_within(kConnectingSteps * link_.timeouts().answer, stop);
    if (!connected) return tl::unexpected(std::move(connected.error()));
    if (*connected) return {};
    attempt_.reset();
    return fail(StoreError::Kind::not_sent, stop.stop_requested() ? "stopped" : "no connection");
  }

  StoreResult<bool> connect_within(Duration longest, const std::stop_token& stop) override {
    if (!attempt_) {
      if (link_.connected()) return true;
      attempt_ = link_.connect(*this);
    }
    const auto over = [this] { return link_.attempts() > *attempt_; };
    if (!await(over, Carrier::current().now() + longest, stop)) return false;
    attempt_.reset();
    if (!link_.connected()) return tl::unexpected(link_.why_not());
    return true;
  }

  void queue(Command command, std::string_view name, Duration blocks_for) override {
    // After a failure that was not received yet: the rest of a pipeline must not run without the
    // commands before it.
    const bool broken = !calls_.empty() && calls_.back().broken();
    Call& call = calls_.push();
    if (blocks_for > Duration::zero() && !broken) {
      // It would hold up everybody behind it.
      call.state = Call::State::elsewhere;
      if (!blocking_) blocking_ = factory_.make(link_.endpoint(), link_.timeouts(), env_);
      blocking_->queue(command, name, blocks_for);
      return;
    }
    call.name = name.empty() ? command[0] : name;
    call.key = key_of(command);
    call.state = Call::State::queued;
    if (broken) call.settle(error(StoreError::Kind::not_sent, broken_reason_));
    if (env_.before_command(info(call)) == CommandFate::drop) {
      // As if the connection had broken under it.
      break_connection("the connection was cut");
    } else if (!broken) {
      append_command(out_, command);
    }
  }

  void flush(const std::stop_token& stop) override {
    if (blocking_) blocking_->flush(stop);
    if (out_.empty()) return;
    std::size_t commands = 0;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].state != Call::State::queued) continue;
      calls_[i].state = Call::State::under_way;
      ++commands;
    }
    link_.send(*this, out_, commands);
    out_.clear();
  }

  StoreResult<Reply> receive(const std::stop_token& stop) override {
    flush(stop);
    if (calls_[0].state == Call::State::elsewhere) {
      calls_.pop();
      return blocking_->receive(stop);
    }
    const TimePoint since = Carrier::current().now();
    const auto known = [this] { return calls_[0].settled(); };
    if (!await(known, since + link_.timeouts().answer, stop)) {
      const bool stopped = stop.stop_requested();
      if (!stopped || !await(known, Carrier::current().now() + link_.timeouts().after_stop / 2, {}))
        give_up(since, stopped);
    }
    return taken();
  }

  std::optional<StoreResult<Reply>> receive_within(Duration longest,
                                                   const std::stop_token& stop) override {
    const Call& call = calls_[0];
    if (call.state == Call::State::elsewhere) {
      auto reply = blocking_->receive_within(longest, stop);
      if (reply) calls_.pop();
      return reply;
    }
    if (call.state == Call::State::queued) return std::nullopt;
    const auto known = [this] { return calls_[0].settled(); };
    if (!await(known, Carrier::current().now() + longest, stop)) return std::nullopt;
    return taken();
  }

  int descriptor() const override {
    if (calls_.empty() || calls_[0].settled()) return -1;
    if (calls_[0].state == Call::State::elsewhere) return blocking_->descriptor();
    return kAwaited;
  }

  bool notify_by(Event& event) override {
    event_ = &event;
    own_event_.reset();
    return true;
  }

  /// Of the connection that the last answer came on: another client's command may have made a new
  /// one since.
  std::uint64_t times_connected() const override {
    return answered_on_ == 0 ? link_.times_connected() : answered_on_;
  }

  void close() noexcept override {
    if (blocking_) blocking_->close();
    break_connection("closed");
  }

 private:
  /// A command that was not received yet.
  struct Call {
    enum class State { queued, under_way, answered, elsewhere };
    std::string name, key;
    State state = State::queued;
    StoreResult<Reply> reply;  ///< of an answered one

    bool settled() const { return state == State::answered; }
    bool broken() const {
      return settled() && !reply && reply.error().kind != StoreError::Kind::rejected;
    }
    void settle(StoreResult<Reply> with) {
      reply = std::move(with);
      state = State::answered;
    }
  };

  void answered(StoreResult<Reply> reply, std::uint64_t connection) override {
    std::size_t oldest = 0;
    while (calls_[oldest].state != Call::State::under_way) ++oldest;
    calls_[oldest].settle(std::move(reply));
    if (calls_[oldest].broken()) {
      fail_queued(calls_[oldest].reply.error().message);
    } else {
      answered_on_ = connection;
    }
    event_->set();
  }
  void attempt_over() override { event_->set(); }

  /// Waits for a condition that comes true with the event; false if it does not in time.
  template <class Condition>
  bool await(const Condition& condition, TimePoint until, const std::stop_token& stop) {
    while (!condition()) {
      const WaitResult waited = Carrier::current().wait(event_, until, stop);
      if (waited != WaitResult::signalled) return condition();
    }
    return true;
  }

  /// The answer to the oldest command does not come in time.
  void give_up(TimePoint waited_since, bool stopped) {
    const std::string why =
        lockbench::describe(stopped ? Transport::Status::stopped : Transport::Status::timed_out,
                            link_.timeouts().answer);
    // A server that still answers others is late; one that says nothing may be gone.
    if (!stopped && link_.heard_at() < waited_since) link_.break_connection(why);
    Call& call = calls_[0];
    if (call.settled()) return;
    link_.forget_oldest(*this);
    call.settle(error(StoreError::Kind::unanswered, why));
    fail_queued(why);
  }

  /// Finishes the oldest command.
  StoreResult<Reply> taken() {
    Call& call = calls_[0];
    const bool came = !call.broken();
    const CommandFate fate =
        env_.after_command(info(call), came ? CommandEnd::answered : CommandEnd::lost);
    StoreResult<Reply> reply = std::move(call.reply);
    calls_.pop();
    if (!came || fate == CommandFate::proceed) return reply;
    break_connection("the answer was lost");
    return fail(StoreError::Kind::unanswered, "the answer was lost");
  }

  void break_connection(std::string_view why) {
    link_.break_connection(why);
    fail_queued(why);
  }

  /// What was not sent yet must not run on a new connection, without the commands before it.
  void fail_queued(std::string_view why) {
    broken_reason_ = why;
    out_.clear();
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].state != Call::State::queued) continue;
      calls_[i].settle(error(StoreError::Kind::not_sent, why));
    }
  }

  CommandInfo info(const Call& call) const {
    return {.store = "redis", .endpoint = display(), .name = call.name, .key = call.key};
  }

  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const {
    return tl::unexpected(link_.error(kind, why));
  }
  StoreResult<Reply> error(StoreError::Kind kind, std::string_view why) const {
    return fail(kind, why);
  }

  SharedLink& link_;
  ConnectionFactory& factory_;
  Env& env_;
  std::unique_ptr<Event> own_event_;
  Event* event_;                          ///< set with each answer
  std::optional<std::uint64_t> attempt_;  ///< to connect, that this client waits for
  std::unique_ptr<Connection> blocking_;  ///< for commands that wait at the server
  std::string out_;                       ///< queued, and not flushed yet
  SlotQueue<Call> calls_;
  std::string broken_reason_;
  std::uint64_t answered_on_ = 0;
};

class SharingFactory : public ConnectionFactory {
 public:
  SharingFactory(Sharing sharing, std::unique_ptr<ConnectionFactory> own, Dial dial)
      : sharing_(sharing), own_(std::move(own)), dial_(std::move(dial)) {}
  SharingFactory(const SharingFactory&) = delete;
  SharingFactory& operator=(const SharingFactory&) = delete;
  ~SharingFactory() override { over_.request_stop(); }

  std::unique_ptr<Connection> make(const Endpoint& endpoint, const Timeouts& timeouts,
                                   Env& env) override {
    const Carrier& carrier = Carrier::current();
    if (!carrier.shared()) return own_->make(endpoint, timeouts, env);
    return std::make_unique<SharedConnection>(next_link(carrier, endpoint, timeouts), *own_, env);
  }
  std::unique_ptr<Connection> make_own(const Endpoint& endpoint, const Timeouts& timeouts,
                                       Env& env) override {
    return own_->make(endpoint, timeouts, env);
  }
  std::unique_ptr<Subscriber> make_subscriber(const Endpoint& endpoint, const Timeouts& timeouts,
                                              Env& env) override {
    return own_->make_subscriber(endpoint, timeouts, env);
  }

 private:
  /// One thread's connections to one server.
  struct Group {
    std::vector<std::unique_ptr<SharedLink>> links;
    std::size_t next = 0;  ///< whose turn it is
  };
  struct CarriedThread {
    std::size_t share = 1;  ///< of the connections
    std::vector<Group> groups;
  };

  SharedLink& next_link(const Carrier& carrier, const Endpoint& endpoint,
                        const Timeouts& timeouts) {
    const std::scoped_lock lock(mutex_);
    CarriedThread& thread = thread_of(carrier);
    Group& group = group_of(thread, endpoint, timeouts);
    if (group.links.size() < thread.share) {
      return *group.links.emplace_back(
          std::make_unique<SharedLink>(endpoint, timeouts, dial_, over_.get_token()));
    }
    return *group.links[group.next++ % thread.share];
  }

  CarriedThread& thread_of(const Carrier& carrier) {
    const int number = static_cast<int>(threads_.size());
    const auto [found, is_new] = threads_.try_emplace(&carrier);
    if (is_new) {
      const bool has_one_more = number < sharing_.connections % sharing_.threads;
      const int share = sharing_.connections / sharing_.threads + (has_one_more ? 1 : 0);
      found->second.share = static_cast<std::size_t>(std::max(share, 1));
    }
    return found->second;
  }

  static Group& group_of(CarriedThread& thread, const Endpoint& endpoint,
                         const Timeouts& timeouts) {
    const auto found =
        std::find_if(thread.groups.begin(), thread.groups.end(), [&](const Group& group) {
          const SharedLink& link = *group.links.front();
          return link.timeouts() == timeouts && is_same(link.endpoint(), endpoint);
        });
    return found == thread.groups.end() ? thread.groups.emplace_back() : *found;
  }

  /// The same server, reached in the same way.
  static bool is_same(const Endpoint& a, const Endpoint& b) {
    const bool same_tls = a.tls == b.tls || (a.tls && b.tls && *a.tls == *b.tls);
    return same_tls && a.host == b.host && a.port == b.port && a.path == b.path &&
           a.user == b.user && a.password == b.password && a.database == b.database &&
           a.sentinels == b.sentinels && a.master == b.master;
  }

  const Sharing sharing_;
  const std::unique_ptr<ConnectionFactory> own_;
  const Dial dial_;
  std::stop_source over_;
  std::mutex mutex_;  ///< guards threads_; never held over a wait
  std::unordered_map<const Carrier*, CarriedThread> threads_;
};

}  // namespace

std::unique_ptr<ConnectionFactory> make_sharing_factory(Sharing sharing,
                                                        std::unique_ptr<ConnectionFactory> own,
                                                        Dial dial) {
  return std::make_unique<SharingFactory>(sharing, std::move(own), std::move(dial));
}

std::unique_ptr<ConnectionFactory> make_sharing_factory(Sharing sharing) {
  return make_sharing_factory(sharing, make_connection_factory(), connect_server);
}

}  // namespace lockbench::redis
