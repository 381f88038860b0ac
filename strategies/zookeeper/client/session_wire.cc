#include <fmt/format.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include "strategies/zookeeper/client/keeper.h"
#include "strategies/zookeeper/client/session.h"

namespace lockbench::zookeeper {
namespace {

constexpr int kResolveEachMs = 60'000;

int whole_milliseconds(Duration duration) {
  const std::int64_t longest = std::numeric_limits<int>::max() / 4;  // the library multiplies it
  return static_cast<int>(std::clamp<std::int64_t>(ceil_milliseconds(duration), 1, longest));
}

/// The library would write to stderr.
void ignore_message(const char* /*message*/) {}

/// A request that has these may have been carried out.
bool is_lost(int code) {
  return code == ZCONNECTIONLOSS || code == ZOPERATIONTIMEOUT || code == ZCLOSING ||
         code == ZSYSTEMERROR;
}

bool ends_session(int code) {
  return code == ZSESSIONEXPIRED || code == ZINVALIDSTATE || code == ZAUTHFAILED;
}

bool came_from_server(int code) {
  return code == ZOK || (code <= ZAPIERROR && code != ZCLOSING && !ends_session(code));
}

/// Nothing for an answer that says neither yes nor one of the expected noes.
std::optional<Reply::Kind> kind_of(int code) {
  switch (code) {
    case ZOK:
      return Reply::Kind::done;
    case ZNONODE:
      return Reply::Kind::no_node;
    case ZNODEEXISTS:
      return Reply::Kind::node_exists;
    case ZNOTEMPTY:
      return Reply::Kind::not_empty;
    default:
      return std::nullopt;
  }
}

Reply reply_from(const Stat* stat) {
  Reply reply;
  if (stat != nullptr) {
    reply.created_by = stat->czxid;
    reply.owner = stat->ephemeralOwner;
  }
  return reply;
}

}  // namespace

/// One session of the library's, which calls back with it. What comes from one that is being ended
/// is not mistaken for its successor's.
struct Session::Connection {
  Session& session;
  const std::uint64_t number;
  zhandle_t* handle = nullptr;

  ~Connection() {
    if (handle != nullptr) zookeeper_close(handle);
  }
};

/// Where one answer goes. Made for each request that is sent, and ended by its answer: the library
/// answers all of them, those of a session that is ended too.
struct Session::Slot {
  const Connection& connection;
  std::shared_ptr<Batch> batch;
  std::size_t index = 0;
};

/// What the library calls.
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
  // It would resolve the names each time that it looks at its socket.
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
  // Each connection that fails takes what was to be sent over it with it.
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
    // Once one has not been sent, those behind it are not either.
    if (code == ZOK) code = send(connection_, requests[i], batch, i);
    if (code != ZOK) on_answer({*connection_, batch, i}, code, {});
  }
  std::unique_lock lock(mutex_);
  if (!await(lock, stop, [&] { return batch->left == 0; })) {
    return fail(StoreError::Kind::unanswered,
                stop.stop_requested() ? "stopped while waiting for the answer"
                                      : "no answer within " + format_duration(command_timeout_));
  }
  return understood(*batch);
}

StoreResult<std::vector<Reply>> Session::understood(const Batch& batch) const {
  std::vector<Reply> replies;
  replies.reserve(batch.answers.size());
  std::optional<StoreError> refused;
  for (const Batch::Answer& answer : batch.answers) {
    if (is_lost(answer.code)) return fail(StoreError::Kind::unanswered, "the connection was lost");
    const auto kind = kind_of(answer.code);
    if (!kind && !refused) {
      // Those before it have taken effect.
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

}  // namespace lockbench::zookeeper
