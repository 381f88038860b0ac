#include "strategies/redis/client/connection.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <stdexcept>

#include "strategies/number.h"
#include "strategies/redis/client/cluster.h"
#include "strategies/redis/client/protocol.h"

namespace lockbench::redis {
namespace {

UrlForm form_of(std::string_view url) {
  const bool unix_socket = url.starts_with("unix://");
  const bool tls = url.starts_with("rediss");
  const bool sentinels = url.starts_with(tls ? "rediss+sentinel://" : "redis+sentinel://");
  const bool cluster = url.starts_with(tls ? "rediss+cluster://" : "redis+cluster://");
  return {.what = "a Redis URL",
          .allowed =
              "redis://[[user]:password@]host[:port][/db], "
              "unix://[[user]:password@]/path[?db=N], "
              "redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/name[/db] or "
              "redis+cluster://[[user]:password@]host[:port][,host[:port]...]; "
              "rediss://, rediss+sentinel:// and rediss+cluster:// for TLS, with ?cacert=FILE and "
              "other settings",
          .schemes = {"redis", "unix", "redis+sentinel", "redis+cluster", "rediss",
                      "rediss+sentinel", "rediss+cluster"},
          .default_port = static_cast<std::uint16_t>(sentinels ? 26379 : 6379),
          .max_hosts = unix_socket            ? 0U
                       : sentinels || cluster ? 32U
                                              : 1U,
          .login = UrlForm::Login::password,
          .query = unix_socket,
          .tls = tls};
}

/// The server that a connection or a subscriber uses.
class Client {
 protected:
  Client(Dialer& dialer, Endpoint endpoint, const Timeouts& timeouts, Env& env)
      : dialer_(dialer),
        endpoint_(std::move(endpoint)),
        display_(endpoint_.display()),
        timeouts_(timeouts),
        env_(env) {}

  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const {
    return failure_at(display_, kind, why);
  }

  Dialer& dialer_;
  const Endpoint endpoint_;
  const std::string display_;
  const Timeouts timeouts_;
  Env& env_;
};

class SocketConnection : public Connection, private Client {
 public:
  SocketConnection(Dialer& dialer, const Endpoint& endpoint, const Timeouts& timeouts, Env& env)
      : Client(dialer, endpoint, timeouts, env) {}

  const std::string& display() const override { return display_; }

  StoreResult<void> connect(const std::stop_token& stop) override {
    if (transport_) return {};
    connecting_.reset();
    auto transport = connect_server(endpoint_, timeouts_, stop, dialer_);
    if (!transport) return fail(StoreError::Kind::not_sent, transport.error());
    return start_on(*std::move(transport), stop);
  }

  StoreResult<bool> connect_within(Duration longest, const std::stop_token& stop) override {
    drop_useless();
    if (transport_) return true;
    // The sentinels are asked one after the other, each with a timeout.
    if (!endpoint_.sentinels.empty()) return connect(stop).map([] { return true; });
    if (!connecting_) {
      auto begun = dialer_.begin(endpoint_.address(), timeouts_, endpoint_.tls.get());
      if (!begun) return fail(StoreError::Kind::not_sent, begun.error());
      connecting_ = *std::move(begun);
      connecting_since_ = env_.now();
    }
    auto transport = connecting_->get(longest, stop);
    if (transport && !*transport) {
      if (env_.now() - connecting_since_ < timeouts_.answer) return false;
      transport = tl::unexpected(connecting_->too_late(timeouts_));
    }
    connecting_.reset();
    if (!transport) return fail(StoreError::Kind::not_sent, transport.error());
    return start_on(*std::move(transport), stop).map([] { return true; });
  }

  void queue(Command command, std::string_view name, Duration blocks_for) override {
    // True if a failure was not received yet: the rest of a pipeline must not run on a new
    // connection without the commands before it.
    const bool broken = !pendings_.empty() && pendings_.back().broken();
    const Pending& pending = pendings_.emplace_back(
        Pending{.name = std::string(name.empty() ? command[0] : name),
                .key = std::string(key_of(command)),
                .blocks_for = blocks_for,
                .state = broken ? Pending::State::never_sent : Pending::State::queued});
    if (env_.before_command(info(pending)) == CommandFate::drop) {
      // As if the connection had broken under it.
      break_connection("the connection was cut");
      return;
    }
    if (!broken) append_command(out_, command);
  }

  void flush(const std::stop_token& stop) override {
    if (out_.empty()) return;
    drop_useless();
    if (auto connected = connect(stop); !connected) {
      break_connection(std::move(connected.error().message));
      return;
    }
    // From here on the server may have received the commands.
    change_pending(Pending::State::queued, Pending::State::sent);
    const Transport::Status status = transport_->send(out_, timeouts_);
    out_.clear();
    if (status != Transport::Status::ok) break_connection(describe(status));
  }

  StoreResult<Reply> receive(const std::stop_token& stop) override {
    flush(stop);
    auto reply = take(timeouts_.answer + pendings_[0].blocks_for, stop);
    if (reply) return std::move(*reply);
    const StoreResult<Reply> late =
        fail(StoreError::Kind::unanswered, describe(Transport::Status::timed_out));
    break_connection(late.error().message);
    return settled(late);
  }

  std::optional<StoreResult<Reply>> receive_within(Duration longest,
                                                   const std::stop_token& stop) override {
    return take(longest, stop);
  }

  int descriptor() const override {
    const bool known = pendings_.empty() || pendings_[0].broken();
    const bool read = transport_ && reader_->may_hold_answer();
    return known || !transport_ || read ? -1 : transport_->descriptor();
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

  /// Drops a connection on which a command would be lost: one that the server has closed while it
  /// was idle, or on which it sent what nobody asked for.
  void drop_useless() {
    const bool long_ago = last_use_.was_long_ago(env_.now());
    const bool idle = pendings_.empty() || pendings_[0].state == Pending::State::queued;
    if (!transport_ || !idle) return;
    if (reader_->holds_bytes() || (long_ago && !transport_->is_quiet())) transport_.reset();
  }

  StoreResult<void> start_on(std::unique_ptr<Transport> transport, const std::stop_token& stop) {
    transport_ = std::move(transport);
    reader_.emplace();
    ++times_connected_;
    auto greeted = greet(endpoint_, *transport_, *reader_, timeouts_, stop, &env_);
    if (!greeted) close();
    return greeted;
  }

  /// The oldest command's answer, reported to the Env; nothing if it did not come in time.
  std::optional<StoreResult<Reply>> take(Duration longest, const std::stop_token& stop) {
    const Pending& pending = pendings_[0];
    if (pending.state == Pending::State::queued) return std::nullopt;
    if (pending.broken()) {
      const bool sent = pending.state == Pending::State::unanswered;
      return settled(
          fail(sent ? StoreError::Kind::unanswered : StoreError::Kind::not_sent, broken_reason_));
    }
    auto read = read_reply(*transport_, *reader_, longest, stop);
    if (read && !*read) return std::nullopt;
    StoreResult<Reply> reply =
        read ? checked(**std::move(read)) : fail(StoreError::Kind::unanswered, read.error());
    const bool last = pendings_.size() == 1 || pendings_[1].state != Pending::State::sent;
    if (is_answer(reply) && last && reader_->holds_bytes()) {
      // The rest would pass for the answer to the next command.
      reply = fail(StoreError::Kind::unanswered, "an answer that nobody asked for");
    }
    // If the master became a replica, the sentinels are asked for the new one.
    const bool demoted =
        !reply && !endpoint_.sentinels.empty() && reply.error().code == StoreError::Code::read_only;
    if (demoted || !is_answer(reply)) break_connection(reply.error().message);
    return settled(std::move(reply));
  }

  static bool is_answer(const StoreResult<Reply>& reply) {
    return reply || reply.error().kind == StoreError::Kind::rejected;
  }

  /// Finishes the oldest command.
  StoreResult<Reply> settled(StoreResult<Reply> reply) {
    const Pending& pending = pendings_[0];
    const bool answered = is_answer(reply);
    const bool in_vain = pending.blocks_for > Duration::zero() && reply && reply->is_nil();
    const CommandEnd end = !answered ? CommandEnd::lost
                           : in_vain ? CommandEnd::in_vain
                                     : CommandEnd::answered;
    const CommandFate fate = env_.after_command(info(pending), end);
    pendings_.pop_front();
    if (answered && fate == CommandFate::drop) {
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
            // WAIT waits for replicas, not for the lock.
            .blocks = pending.blocks_for > Duration::zero() && pending.name != "WAIT"};
  }

  std::string describe(Transport::Status status) const {
    return lockbench::describe(status, timeouts_, transport_.get());
  }

  StoreResult<Reply> checked(Reply reply) const {
    if (reply.type != Reply::Type::error) return reply;
    return failure_at(display_, StoreError::Kind::rejected, reply.text, reply.code);
  }

  void break_connection(std::string_view why) {
    broken_reason_ = why;
    transport_.reset();
    reader_.reset();
    out_.clear();
    change_pending(Pending::State::queued, Pending::State::never_sent);
    change_pending(Pending::State::sent, Pending::State::unanswered);
  }

  void change_pending(Pending::State from, Pending::State to) {
    for (Pending& pending : pendings_) {
      if (pending.state == from) pending.state = to;
    }
  }

  std::unique_ptr<Connecting> connecting_;
  TimePoint connecting_since_{};
  std::unique_ptr<Transport> transport_;
  std::optional<ReplyReader> reader_;
  LastUse last_use_;
  std::string out_;
  std::deque<Pending> pendings_;  ///< oldest first
  std::string broken_reason_;
  std::uint64_t times_connected_ = 0;
};

/// A mutex guards sending, which does not wait. The receiver does not hold it while it waits.
class SocketSubscriber : public Subscriber, private Client {
 public:
  SocketSubscriber(Dialer& dialer, const Endpoint& endpoint, const Timeouts& timeouts, Env& env)
      : Client(dialer, endpoint, timeouts, env) {}

  StoreResult<void> connect(const std::stop_token& stop) override {
    if (transport_) return {};
    auto transport = connect_server(endpoint_, timeouts_, stop, dialer_);
    if (!transport) return fail(StoreError::Kind::not_sent, transport.error());
    ReplyReader reader;
    auto greeted = greet(endpoint_, **transport, reader, timeouts_, stop, nullptr);
    if (!greeted) return greeted;
    const std::scoped_lock lock(sending_);
    reader_ = std::move(reader);
    transport_ = std::move(*transport);
    return {};
  }

  StoreResult<void> subscribe(const std::string& channel) override {
    return send(endpoint_.sharded ? "SSUBSCRIBE" : "SUBSCRIBE", channel);
  }
  StoreResult<void> unsubscribe(const std::string& channel) override {
    return send(endpoint_.sharded ? "SUNSUBSCRIBE" : "UNSUBSCRIBE", channel);
  }

  StoreResult<void> subscribe_to_all(std::span<const std::string> channels) override {
    {
      const std::scoped_lock lock(sending_);
      gathers_ = true;
    }
    if (auto gathered = Subscriber::subscribe_to_all(channels); !gathered) return gathered;
    for (std::string bytes = take_gathered(); !bytes.empty(); bytes = take_gathered()) {
      // Unlocked: only the receiver changes `transport_`, and this is the receiver.
      const Transport::Status status = transport_->send(bytes, timeouts_);
      if (status != Transport::Status::ok) return cut(lockbench::describe(status, timeouts_));
    }
    return {};
  }

  StoreResult<std::optional<Push>> receive(Duration longest, const std::stop_token& stop) override {
    if (!transport_) return fail(StoreError::Kind::not_sent, "not connected");
    if (cut_) return broken("the connection was cut");
    const auto reply = read_reply(*transport_, reader_, longest, stop);
    if (!reply) return broken(reply.error());
    if (!*reply) return std::nullopt;
    return pushed(**reply);
  }

 private:
  struct Sent {
    std::string name, channel;
  };

  CommandInfo info(const Sent& sent) const {
    return {.store = "redis", .endpoint = display_, .name = sent.name, .key = sent.channel};
  }

  StoreResult<void> send(std::string_view name, const std::string& channel) {
    const std::scoped_lock lock(sending_);
    if (!transport_) return fail(StoreError::Kind::not_sent, "not connected");
    const Sent& sent = under_way_.emplace_back(Sent{std::string(name), channel});
    if (env_.before_command(info(sent)) == CommandFate::drop) {
      cut_ = true;
      return fail(StoreError::Kind::not_sent, "the connection was cut");
    }
    const std::array<std::string_view, 2> words{name, channel};
    append_command(gathered_, words);
    if (gathers_) return {};
    const std::string bytes = std::exchange(gathered_, {});
    if (transport_->send(bytes, Duration::zero()) == Transport::Status::ok) return {};
    return cut("the connection was closed");
  }

  /// Takes the batched commands. When none are left, callers send directly again.
  std::string take_gathered() {
    const std::scoped_lock lock(sending_);
    gathers_ = !gathered_.empty();
    return std::exchange(gathered_, {});
  }

  tl::unexpected<StoreError> cut(std::string_view why) {
    cut_ = true;
    return fail(StoreError::Kind::unanswered, why);
  }

  StoreResult<std::optional<Push>> pushed(const Reply& reply) {
    const bool moved = reply.code == StoreError::Code::moved;
    if (endpoint_.sharded && moved) return refused_channel();
    auto push = read_push(reply);
    if (!push) return broken(push.error());
    if (push->kind == Push::Kind::message) return *std::move(push);
    const std::scoped_lock lock(sending_);
    // A slot that moves ends the subscriptions to its channels unasked.
    const bool asked =
        !endpoint_.sharded || under_way_.empty() || under_way_.front().channel == push->channel;
    if (!under_way_.empty() && asked) {
      env_.after_command(info(under_way_.front()), CommandEnd::answered);
      under_way_.pop_front();
    }
    return *std::move(push);
  }

  /// The oldest request was answered with MOVED.
  StoreResult<std::optional<Push>> refused_channel() {
    if (std::unique_lock lock(sending_); !under_way_.empty()) {
      Push push{Push::Kind::unsubscribed, under_way_.front().channel};
      env_.after_command(info(under_way_.front()), CommandEnd::lost);
      under_way_.pop_front();
      return push;
    }
    return broken("it sent MOVED, expected a message");
  }

  tl::unexpected<StoreError> broken(std::string_view why) {
    const std::scoped_lock lock(sending_);
    for (const Sent& sent : under_way_) env_.after_command(info(sent), CommandEnd::lost);
    under_way_.clear();
    transport_.reset();
    gathered_.clear();
    gathers_ = cut_ = false;
    return fail(StoreError::Kind::unanswered, why);
  }

  std::mutex sending_;  ///< guards sending, and changes of `transport_`
  std::unique_ptr<Transport> transport_;
  ReplyReader reader_;
  std::deque<Sent> under_way_;
  std::string gathered_;           ///< commands for the receiver, which may wait to send them
  bool gathers_ = false;           ///< the receiver sends; others must not
  std::atomic<bool> cut_ = false;  ///< while sending: the receiver closes it
};

class SocketFactory : public ConnectionFactory {
 public:
  explicit SocketFactory(Dialer& dialer) : dialer_(dialer) {}

  std::unique_ptr<Connection> make(const Endpoint& endpoint, const Timeouts& timeouts,
                                   Env& env) override {
    const auto make_one = [&dialer = dialer_](const Endpoint& server, const Timeouts& times,
                                              Env& its) -> std::unique_ptr<Connection> {
      return std::make_unique<SocketConnection>(dialer, server, times, its);
    };
    if (endpoint.cluster.empty()) return make_one(endpoint, timeouts, env);
    return make_cluster_connection(make_one, endpoint, timeouts, env);
  }
  std::unique_ptr<Subscriber> make_subscriber(const Endpoint& endpoint, const Timeouts& timeouts,
                                              Env& env) override {
    return std::make_unique<SocketSubscriber>(dialer_, endpoint, timeouts, env);
  }
  void poll(std::span<pollfd> descriptors, Duration longest, const std::stop_token& stop) override {
    dialer_.poll(descriptors, longest, stop);
  }

 private:
  Dialer& dialer_;
};

}  // namespace

std::string Endpoint::display() const {
  if (!path.empty()) return "unix:" + path;
  if (!cluster.empty()) return Url{.hosts = cluster}.display();
  if (sentinels.empty()) return display_address(host, std::to_string(port));
  return Url{.hosts = sentinels, .path = "/" + master}.display();
}

std::string Endpoint::display_with_database() const {
  if (database == 0) return display();
  return display() + (path.empty() ? "/" : "?db=") + std::to_string(database);
}

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  const UrlForm form = form_of(text);
  auto url = parse_url(text, form);
  if (!url) return tl::unexpected(std::move(url.error()));
  Endpoint endpoint{.user = std::move(url->user),
                    .password = std::move(url->password),
                    .tls = std::move(url->tls)};
  std::string_view path = url->path;
  std::string_view database;
  if (url->scheme == "unix") {
    database = url->query;
    endpoint.path = path;
    if (!path.starts_with('/')) return invalid_url("a unix socket needs an absolute path", form);
    // The size of sockaddr_un's path without its final zero.
    if (path.size() > 107) {
      return invalid_url("a unix socket's path has at most 107 characters", form);
    }
    if (database.empty()) return endpoint;
    if (!database.starts_with("db=")) return invalid_url("the only parameter is db=N", form);
    database.remove_prefix(3);
  } else {
    path.remove_prefix(std::min<std::size_t>(path.size(), 1));
    if (url->scheme.ends_with("+cluster")) {
      if (!path.empty()) return invalid_url("a cluster has one database, without a number", form);
      endpoint.cluster = std::move(url->hosts);
    } else if (url->scheme.ends_with("+sentinel")) {
      database = cut_at(path, '/');
      if (path.empty()) return invalid_url("the master's name is missing", form);
      if (path.find('@') != std::string_view::npos) {
        return invalid_url("an @ in the master's name; a / in a password is written %2F", form);
      }
      endpoint.master = path;
      endpoint.sentinels = std::move(url->hosts);
    } else {
      database = path;
      endpoint.host = url->hosts.front().host;
      endpoint.port = url->hosts.front().port;
    }
    if (database.empty()) return endpoint;
  }
  constexpr int kMostDatabases = 1'000'000;
  const auto number = parse_number<int>(database);
  if (!number || *number < 0 || *number > kMostDatabases) {
    return invalid_url("the database must be a number", form);
  }
  endpoint.database = *number;
  return endpoint;
}

void Connection::queue(const Script& script, bool in_full, WordList keys, WordList args) {
  // Enough for any script here. Allocating the words for each call would show.
  constexpr std::size_t kMostWords = 16, kFixed = 3;
  const std::string key_count = std::to_string(keys.size());
  std::array<std::string_view, kMostWords> words{in_full ? "EVAL" : "EVALSHA",
                                                 in_full ? script.source : script.sha1, key_count};
  if (kFixed + keys.size() + args.size() > kMostWords) throw std::length_error("a long command");
  const auto behind_keys = std::copy(keys.begin(), keys.end(), words.begin() + kFixed);
  const auto end = std::copy(args.begin(), args.end(), behind_keys);
  queue(Command(words.begin(), end), script.name);
}

StoreResult<Reply> Connection::call(const Script& script, WordList keys, WordList args,
                                    const std::stop_token& stop) {
  queue(script, false, keys, args);
  StoreResult<Reply> reply = receive(stop);
  if (reply || reply.error().code != StoreError::Code::unknown_script) return reply;
  queue(script, true, keys, args);
  return receive(stop);
}

StoreError Connection::not_understood(std::string_view expected, std::string_view name,
                                      const Reply& reply) {
  close();
  return {StoreError::Kind::unanswered, display() + ": " + describe_answer(name, reply, expected)};
}

std::unique_ptr<ConnectionFactory> make_connection_factory_on(Dialer& dialer) {
  return std::make_unique<SocketFactory>(dialer);
}

std::unique_ptr<ConnectionFactory> make_connection_factory() {
  return make_connection_factory_on(Dialer::real());
}

}  // namespace lockbench::redis
