#include "strategies/zookeeper/client/session.h"

#include <fmt/format.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "strategies/zookeeper/client/keeper.h"

namespace lockbench::zookeeper {
namespace {

/// After a stop: how long an answer under way may still take, and how long giving up may. Together
/// less than 100 ms.
constexpr Duration kGrace = std::chrono::milliseconds(40);
constexpr int kResolveEachMs = 60'000;

int whole_milliseconds(Duration duration) {
  const std::int64_t longest = std::numeric_limits<int>::max() / 4;  // the library multiplies it
  return static_cast<int>(std::clamp<std::int64_t>(ceil_milliseconds(duration), 1, longest));
}

/// Without this callback the library would log to stderr.
void ignore_message(const char* /*message*/) {}

Reply reply_from(const Stat* stat) {
  Reply reply;
  if (stat != nullptr) {
    reply.created_by = stat->czxid;
    reply.owner = stat->ephemeralOwner;
  }
  return reply;
}

}  // namespace

/// One session of the library, and the context of its callbacks. The number tells late callbacks of
/// an old session from those of its successor.
struct Session::Connection {
  Session& session;
  const std::uint64_t number;
  zhandle_t* handle = nullptr;

  ~Connection() {
    if (handle != nullptr) zookeeper_close(handle);
  }
};

/// Where one answer goes. Made for each request and deleted by its callback: the library calls back
/// for every request, also when the session is closed.
struct Session::Slot {
  const Connection& connection;
  std::shared_ptr<Batch> batch;
  std::size_t index = 0;
};

/// The library's callbacks.
struct Session::Callbacks {
  static void answer(int code, Reply reply, const void* data) {
    // NOLINTNEXTLINE: the library hands back what it was given, as const
    const std::unique_ptr<Slot> slot(static_cast<Slot*>(const_cast<void*>(data)));
    slot->connection.session.on_answer(*slot, code, std::move(reply));
  }

  static void made(int code, const char* path, const Stat* stat, const void* data) {
    Reply reply = reply_from(code == ZOK ? stat : nullptr);
    if (code == ZOK && path != nullptr) reply.path = path;
    answer(code, std::move(reply), data);
  }
  static void listed(int code, const String_vector* names, const void* data) {
    Reply reply;
    if (code == ZOK && names != nullptr) {
      reply.children.assign(names->data, names->data + names->count);
    }
    answer(code, std::move(reply), data);
  }
  static void seen(int code, const char* /*value*/, int /*size*/, const Stat* stat,
                   const void* data) {
    answer(code, reply_from(code == ZOK ? stat : nullptr), data);
  }
  static void there(int code, const Stat* /*stat*/, const void* data) { answer(code, {}, data); }
  static void removed(int code, const void* data) { answer(code, {}, data); }

  static void event(zhandle_t* handle, int type, int state, const char* path, void* context) {
    auto& from = *static_cast<Connection*>(context);
    if (type == ZOO_SESSION_EVENT) {
      from.session.on_session(from, state, std::chrono::milliseconds(zoo_recv_timeout(handle)),
                              zoo_client_id(handle)->client_id);
    } else if (path != nullptr) {
      from.session.on_node(from, type, path);
    }
  }

  static int send(zhandle_t& to, const Request& request, bool private_nodes, const Slot* slot) {
    const char* const path = request.path.c_str();
    const ACL_vector& acl = private_nodes ? ZOO_CREATOR_ALL_ACL : ZOO_OPEN_ACL_UNSAFE;
    const auto make = [&](int mode) {
      return zoo_acreate2(&to, path, "", 0, &acl, mode, made, slot);
    };
    switch (request.kind) {
      case Request::Kind::make:
        return make(ZOO_PERSISTENT);
      case Request::Kind::make_ephemeral:
        return make(ZOO_EPHEMERAL);
      case Request::Kind::make_sequential:
        return make(ZOO_EPHEMERAL_SEQUENTIAL);
      case Request::Kind::children:
        return zoo_aget_children(&to, path, 0, listed, slot);
      case Request::Kind::look:
        return zoo_aget(&to, path, 1, seen, slot);
      case Request::Kind::exists:
        return zoo_aexists(&to, path, 0, there, slot);
      case Request::Kind::remove:
        return zoo_adelete(&to, path, -1, removed, slot);
    }
    return ZBADARGUMENTS;
  }
};

int Session::send(const std::shared_ptr<Connection>& connection, const Request& request,
                  const std::shared_ptr<Batch>& batch, std::size_t index) {
  auto slot = std::make_unique<Slot>(Slot{*connection, batch, index});
  const bool private_nodes = !connection->session.endpoint_.user.empty();
  const int code = Callbacks::send(*connection->handle, request, private_nodes, slot.get());
  if (code == ZOK) static_cast<void>(slot.release());
  return code;
}

StoreResult<void> Session::open(Duration ttl, const std::stop_token& stop) {
  close();
  if (stop.stop_requested()) return fail(StoreError::Kind::not_sent, "stopped while connecting");
  asked_ttl_ = ttl;
  if (keeper_ != nullptr) keeper_->add(*this, ttl);
  auto connection = std::make_shared<Connection>(Connection{*this, number() + 1});
  {
    const std::scoped_lock lock(mutex_);
    state_ = State::connecting;
    number_ = connection->number;
    contact_ = {};
    silent_ = false;
  }
  zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
  connection->handle =
      zookeeper_init2(endpoint_.connect_string().c_str(), Callbacks::event, whole_milliseconds(ttl),
                      nullptr, connection.get(), ZOO_NO_LOG_CLIENTENV, ignore_message);
  if (connection->handle == nullptr) {
    const int why = errno;
    return fail(StoreError::Kind::not_sent,
                fmt::format("cannot be connected to: {}", std::generic_category().message(why)));
  }
  // By default it resolves the names each time that it checks its socket.
  zoo_set_servers_resolution_delay(connection->handle, kResolveEachMs);
  if (!endpoint_.user.empty()) {
    const std::string secret = endpoint_.user + ":" + endpoint_.password;
    zoo_add_auth(connection->handle, "digest", secret.data(), static_cast<int>(secret.size()),
                 nullptr, nullptr);
  }
  {
    const std::scoped_lock lock(mutex_);
    connection_ = std::move(connection);
  }
  return await_first_answer(stop);
}

StoreResult<void> Session::await_first_answer(const std::stop_token& stop) {
  const Request look_at_root{.kind = Request::Kind::exists, .path = "/"};
  // A connection that fails also fails the request that was to be sent over it.
  for (int address = 0; address < endpoint_.addresses(); ++address) {
    const auto batch = std::make_shared<Batch>(1, env_.now());
    if (send(connection_, look_at_root, batch, 0) != ZOK) break;
    std::unique_lock lock(mutex_);
    if (!await(lock, stop, [&] { return batch->left == 0; })) {
      return fail(StoreError::Kind::not_sent,
                  stop.stop_requested() ? "stopped while connecting"
                                        : "no answer within " + format_duration(command_timeout_));
    }
    const int code = batch->answers.front().code;
    if (code == ZOK) return {};
    if (code == ZNONODE) {
      return fail(StoreError::Kind::not_sent, "there is no node " + endpoint_.chroot);
    }
    if (!is_lost(code)) return fail(StoreError::Kind::not_sent, zerror(code));
  }
  return fail(StoreError::Kind::not_sent, "no ZooKeeper answers");
}

StoreResult<std::vector<Reply>> Session::exchange(std::span<const Request> requests,
                                                  const std::stop_token& stop) {
  if (!connected()) {
    if (auto back = await_reconnection(stop); !back) return tl::unexpected(back.error());
  }
  const auto batch = std::make_shared<Batch>(requests.size(), env_.now());
  int code = ZOK;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    // After one that could not be sent, the rest is not sent either.
    if (code == ZOK) code = send(connection_, requests[i], batch, i);
    if (code != ZOK) on_answer({*connection_, batch, i}, code, {});
  }
  std::unique_lock lock(mutex_);
  if (!await(lock, stop, [&] { return batch->left == 0; })) {
    return fail(StoreError::Kind::unanswered,
                stop.stop_requested() ? "stopped while waiting for the answer"
                                      : "no answer within " + format_duration(command_timeout_));
  }
  return replies_of(*batch);
}

StoreResult<std::vector<Reply>> Session::replies_of(const Batch& batch) const {
  std::vector<Reply> replies;
  replies.reserve(batch.answers.size());
  std::optional<StoreError> refused;
  for (const Batch::Answer& answer : batch.answers) {
    if (is_lost(answer.code)) return fail(StoreError::Kind::unanswered, "the connection was lost");
    const auto kind = kind_of(answer.code);
    if (!kind && !refused) {
      // The requests before it have taken effect.
      refused = fail(replies.empty() ? StoreError::Kind::rejected : StoreError::Kind::unanswered,
                     ends_session(answer.code) ? "the session has ended" : zerror(answer.code))
                    .value();
    }
    replies.push_back(answer.reply);
    replies.back().kind = kind.value_or(Reply::Kind::no_node);
  }
  if (refused) return tl::unexpected(*std::move(refused));
  return replies;
}

void Session::on_answer(const Slot& slot, int code, Reply reply) {
  const std::scoped_lock lock(mutex_);
  Batch& batch = *slot.batch;
  batch.answers[slot.index] = {code, std::move(reply)};
  if (--batch.left == 0) changed_.notify_all();
  if (slot.connection.number != number_) return;
  if (came_from_server(code)) confirm_locked(batch.sent_at);
  if (ends_session(code)) end_locked(clock_->now());
}

void Session::on_session(const Connection& from, int state, Duration timeout, std::int64_t id) {
  const std::scoped_lock lock(mutex_);
  if (from.number != number_) return;
  if (state_ != State::connecting && state_ != State::connected) return;
  if (state == ZOO_CONNECTED_STATE) {
    timeout_ = timeout;
    id_ = id;
    state_ = State::connected;
  } else if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
    end_locked(clock_->now());
  } else {
    state_ = State::connecting;
    wake_locked();
  }
  changed_.notify_all();
}

void Session::on_node(const Connection& from, int event, std::string_view path) {
  const std::scoped_lock lock(mutex_);
  if (from.number != number_) return;
  if (path == listened_to_) wake_locked();
  if (event != ZOO_DELETED_EVENT) return;
  std::erase_if(bound_, [&](const Bound& bound) {
    if (bound.path != path) return false;
    bound.state->mark_lost(clock_->now());
    return true;
  });
}

Session::Session(Endpoint endpoint, Duration command_timeout, Env& env, std::unique_ptr<Env> clock,
                 SessionKeeper* keeper)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      command_timeout_(command_timeout),
      env_(env),
      clock_(std::move(clock)),
      keeper_(keeper) {}

void Session::close() {
  std::shared_ptr<Connection> ending;
  bool silent = false;
  {
    const std::scoped_lock lock(mutex_);
    ending = std::move(connection_);
    silent = silent_ && state_ == State::connected;
    end_locked(env_.now());
  }
  if (!ending) return;
  if (keeper_ != nullptr) keeper_->remove(*this);
  // Closing waits more than a second for a server that does not answer.
  if (silent && keeper_ != nullptr) {
    keeper_->close_later(
        [self = shared_from_this(), ending = std::move(ending)]() mutable { ending.reset(); });
  }
  // Not under the mutex: this calls back for every request without an answer.
  ending.reset();
}

tl::unexpected<StoreError> Session::fail(StoreError::Kind kind, std::string_view why) const {
  return tl::unexpected(StoreError{kind, fmt::format("{}: {}", display_, why)});
}

bool Session::await(std::unique_lock<std::mutex>& lock, const std::stop_token& stop,
                    const std::function<bool()>& until) {
  const TimePoint give_up_at = env_.now() + command_timeout_;
  if (changed_.wait_until(lock, stop, give_up_at, until)) return true;
  if (stop.stop_requested() &&
      changed_.wait_until(lock, std::min(give_up_at, env_.now() + kGrace), until)) {
    return true;
  }
  silent_ = true;
  return false;
}

StoreResult<void> Session::connect(Duration ttl, const std::stop_token& stop) {
  bool goes_on = false;
  {
    const std::scoped_lock lock(mutex_);
    goes_on = ttl == asked_ttl_ || !bound_.empty();
    if (goes_on && state_ == State::connected) return {};
    goes_on = goes_on && state_ == State::connecting;
  }
  if (goes_on) {
    auto back = await_reconnection(stop);
    if (back || !is_over(number())) return back;
  }
  auto opened = open(ttl, stop);
  if (!opened) close();
  return opened;
}

StoreResult<void> Session::await_reconnection(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  await(lock, stop, [this] { return state_ != State::connecting; });
  if (state_ == State::connected) return {};
  if (state_ != State::connecting) return fail(StoreError::Kind::rejected, "the session has ended");
  return fail(StoreError::Kind::not_sent,
              stop.stop_requested() ? "stopped while connecting"
                                    : "no connection within " + format_duration(command_timeout_));
}

StoreResult<std::vector<Reply>> Session::call(std::span<const Request> requests,
                                              std::string_view key, const std::stop_token& stop) {
  bool cut = false;
  for (const Request& request : requests) {
    cut |= env_.before_command(info_of(request, key)) == CommandFate::drop;
  }
  StoreResult<std::vector<Reply>> answer =
      fail(StoreError::Kind::not_sent, "the connection was cut");
  if (!cut) answer = exchange(requests, stop);
  const bool answered = answer || answer.error().kind == StoreError::Kind::rejected;
  bool lost = false;
  for (const Request& request : requests) {
    const CommandFate fate = env_.after_command(info_of(request, key),
                                                answered ? CommandEnd::answered : CommandEnd::lost);
    lost |= fate == CommandFate::drop;
  }
  if (answered && lost) return fail(StoreError::Kind::unanswered, "the answer was lost");
  return answer;
}

CommandInfo Session::info_of(const Request& request, std::string_view key) const {
  return {.store = "zookeeper", .endpoint = display_, .name = name_of(request.kind), .key = key};
}

void Session::listen(std::string path) {
  std::shared_ptr<Event> event = env_.make_event();
  const std::scoped_lock lock(mutex_);
  listened_to_ = std::move(path);
  // Nothing else would set it any more.
  if (state_ != State::connected) event->set();
  event_ = std::move(event);
}

WaitResult Session::wait(TimePoint deadline, const std::stop_token& stop) {
  std::shared_ptr<Event> event;
  {
    const std::scoped_lock lock(mutex_);
    event = event_;
  }
  const WaitResult result = env_.wait(event.get(), deadline, stop);
  const std::scoped_lock lock(mutex_);
  event_.reset();
  listened_to_.clear();
  return result;
}

std::shared_ptr<LeaseState> Session::bind(std::string path) {
  const std::scoped_lock lock(mutex_);
  const bool alive = state_ == State::connected || state_ == State::connecting;
  if (!alive || env_.now() >= contact_ + timeout_) return nullptr;
  auto lease = std::make_shared<LeaseState>(contact_ + timeout_, contact_);
  bound_.push_back({std::move(path), lease});
  return lease;
}

bool Session::unbind(const std::shared_ptr<LeaseState>& lease) {
  const std::scoped_lock lock(mutex_);
  return std::erase_if(bound_, [&](const Bound& bound) { return bound.state == lease; }) > 0;
}

bool Session::is_bound(std::string_view path) const {
  const std::scoped_lock lock(mutex_);
  return std::any_of(bound_.begin(), bound_.end(),
                     [&](const Bound& bound) { return bound.path == path; });
}

bool Session::has_leases() const {
  const std::scoped_lock lock(mutex_);
  return !bound_.empty();
}

bool Session::connected() const {
  const std::scoped_lock lock(mutex_);
  return state_ == State::connected;
}

bool Session::is_over(std::uint64_t number) const {
  const std::scoped_lock lock(mutex_);
  return number != number_ || state_ == State::over || state_ == State::none;
}

std::uint64_t Session::number() const {
  const std::scoped_lock lock(mutex_);
  return number_;
}

std::int64_t Session::id() const {
  const std::scoped_lock lock(mutex_);
  return id_;
}

void Session::end_locked(TimePoint now) {
  if (state_ != State::none) state_ = State::over;
  for (const Bound& bound : bound_) bound.state->mark_lost(now);
  bound_.clear();
  wake_locked();
}

void Session::confirm_locked(TimePoint sent_at) {
  // The server counts from the arrival of a request, which is later.
  if (sent_at <= contact_) return;
  contact_ = sent_at;
  silent_ = false;
  for (const Bound& bound : bound_) bound.state->extend(contact_ + timeout_, contact_);
}

void Session::wake_locked() {
  if (event_) event_->set();
}

void Session::keep_alive(Env& env) {
  static const Request ping{.kind = Request::Kind::exists, .path = "/"};
  const CommandInfo info = info_of(ping, {});
  const TimePoint now = env.now();
  bool due = false;
  std::shared_ptr<Batch> ended;
  {
    const std::scoped_lock lock(mutex_);
    if (ping_ && ping_->left == 0) ended = std::exchange(ping_, nullptr);
    // The server may have ended the session without being able to report it.
    if (state_ == State::connecting && !bound_.empty() && now >= contact_ + timeout_) {
      end_locked(now);
    }
    due = !ping_ && !bound_.empty() && state_ == State::connected && now - contact_ >= timeout_ / 3;
  }
  if (ended) {
    // ZNONODE is an answer of the server too.
    const int code = ended->answers.front().code;
    const bool answered = code == ZOK || code == ZNONODE;
    env.after_command(info, answered ? CommandEnd::answered : CommandEnd::lost);
  }
  if (!due) return;
  const bool cut = env.before_command(info) == CommandFate::drop;
  if (cut || !send_ping(ping, now)) env.after_command(info, CommandEnd::lost);
}

bool Session::send_ping(const Request& request, TimePoint now) {
  const std::scoped_lock lock(mutex_);
  if (!connection_) return false;
  auto batch = std::make_shared<Batch>(1, now);
  if (send(connection_, request, batch, 0) != ZOK) return false;
  ping_ = std::move(batch);
  return true;
}

}  // namespace lockbench::zookeeper
