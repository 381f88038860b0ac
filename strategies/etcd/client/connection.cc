#include "strategies/etcd/client/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/etcd/client/answers.h"
#include "strategies/etcd/client/channel.h"

namespace lockbench::etcd {
namespace {

using Kv = etcdserverpb::KV::Stub;
using Leases = etcdserverpb::Lease::Stub;

/// How often a wait for a connection looks whether it is to stop: gRPC's own wait for a change of
/// state cannot be cancelled.
constexpr Duration kSlice = std::chrono::milliseconds(20);
/// The second attempt is for a token that has expired.
constexpr int kAttempts = 2;

/// Whether the server answered the request. A cluster without a leader answers UNAVAILABLE, like a
/// server that cannot be reached.
bool is_answer(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNIMPLEMENTED:
      return true;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      // Not the server's but the library's own, for an answer that is too large to be read.
      return status.error_message().find("larger than max") == std::string::npos;
    default:
      return false;
  }
}

void add(etcdserverpb::TxnRequest& request, const Condition& condition) {
  etcdserverpb::Compare& compare = *request.add_compare();
  compare.set_target(etcdserverpb::Compare::CREATE);
  compare.set_result(condition.is == Condition::Is::equal ? etcdserverpb::Compare::EQUAL
                                                          : etcdserverpb::Compare::GREATER);
  compare.set_key(condition.key);
  compare.set_create_revision(condition.revision);
  if (condition.prefix) compare.set_range_end(end_of_prefix(condition.key));
}

void fill(etcdserverpb::RequestOp& request, const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::put:
      request.mutable_request_put()->set_key(operation.key);
      request.mutable_request_put()->set_lease(operation.lease);
      return;
    case Operation::Kind::remove:
      request.mutable_request_delete_range()->set_key(operation.key);
      return;
    case Operation::Kind::get:
    case Operation::Kind::newest:
      break;
  }
  etcdserverpb::RangeRequest& range = *request.mutable_request_range();
  range.set_key(operation.key);
  range.set_keys_only(true);
  if (operation.kind == Operation::Kind::get) return;
  range.set_range_end(end_of_prefix(operation.key));
  range.set_limit(operation.count);
  range.set_sort_target(etcdserverpb::RangeRequest::CREATE);
  range.set_sort_order(etcdserverpb::RangeRequest::DESCEND);
  range.set_max_create_revision(operation.created_until);
}

etcdserverpb::TxnRequest to_request(const Txn& txn) {
  etcdserverpb::TxnRequest request;
  for (const Condition& condition : txn.conditions) add(request, condition);
  for (const Operation& operation : txn.then) fill(*request.add_success(), operation);
  for (const Operation& operation : txn.otherwise) fill(*request.add_failure(), operation);
  return request;
}

}  // namespace

bool wants_another_token(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
         status.error_message().find("revision in header is old") != std::string::npos;
}

Connection::Connection(Endpoint endpoint, const Timeouts& timeouts, Env& env)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      timeouts_(timeouts),
      env_(env),
      address_(member().display()) {}

Connection::~Connection() = default;

void Connection::close() noexcept { channel_.reset(); }

tl::unexpected<StoreError> Connection::fail(StoreError::Kind kind, std::string_view why) const {
  return tl::unexpected(StoreError{kind, fmt::format("{}: {}", address_, printable(why))});
}

tl::unexpected<StoreError> Connection::not_understood(std::string_view name,
                                                      std::string_view expected) {
  close();
  return fail(StoreError::Kind::unanswered,
              fmt::format("its answer to {} does not fit, expected {}", name, expected));
}

CommandInfo Connection::info_of(const Call& call, bool blocks) const {
  return {
      .store = "etcd", .endpoint = address_, .name = call.name, .key = call.lock, .blocks = blocks};
}

StoreResult<void> Connection::open(Duration limit, const std::stop_token& stop) {
  address_ = member().display();
  const auto credentials = credentials_of(endpoint_);
  if (!credentials) return fail(StoreError::Kind::not_sent, credentials.error());
  auto completions = Completions::for_caller();
  if (!completions) return fail(StoreError::Kind::not_sent, completions.error());
  completions_ = *std::move(completions);
  auto made = std::make_unique<Channel>(member(), endpoint_, *credentials, completions_);
  const TimePoint give_up_at = env_.now() + limit;
  grpc_connectivity_state state = made->channel->GetState(true);
  while (state != GRPC_CHANNEL_READY) {
    const TimePoint now = env_.now();
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) {
      // One that has been reached is just down.
      return fail(StoreError::Kind::not_sent,
                  reached_ ? "no etcd server answers"
                           : why_silent(member(), endpoint_, give_up_at - now, stop));
    }
    if (stop.stop_requested()) {
      return fail(StoreError::Kind::not_sent, "stopped while connecting");
    }
    if (now >= give_up_at) {
      return fail(StoreError::Kind::not_sent, "no connection within " + format_duration(limit));
    }
    made->await_change(state, std::min(kSlice, give_up_at - now));
    state = made->channel->GetState(true);
  }
  channel_ = std::move(made);
  // A token of the time before may name a revision that a new server has yet to reach, and for that
  // it waits without an answer.
  token_.clear();
  reached_ = true;
  return {};
}

StoreResult<void> Connection::connect(const std::stop_token& stop) {
  if (channel_ && !channel_->ready()) {
    close();
    ++next_;
  }
  if (!channel_) {
    const bool late = stop.stop_requested();
    const std::size_t members = endpoint_.members.size();
    const Duration limit =
        (late ? last_moment() : timeouts_.answer) / static_cast<std::int64_t>(members);
    StoreResult<void> opened;
    for (std::size_t tried = 0; tried < members; ++tried) {
      opened = open(limit, late ? std::stop_token() : stop);
      if (opened) break;
      ++next_;
    }
    if (!opened) return opened;
  }
  return token_.empty() && !endpoint_.user.empty() ? authenticate(stop) : StoreResult<void>();
}

StoreResult<void> Connection::authenticate(const std::stop_token& stop) {
  etcdserverpb::AuthenticateRequest request;
  request.set_name(endpoint_.user);
  request.set_password(endpoint_.password);
  etcdserverpb::AuthenticateResponse response;
  const auto done = exchange(
      {"Authenticate", {}, stop},
      send_by(&Channel::auth, &etcdserverpb::Auth::Stub::AsyncAuthenticate, request, response));
  // Even if the login may have succeeded: the command itself was not sent.
  if (!done) return tl::unexpected(StoreError{StoreError::Kind::not_sent, done.error().message});
  if (!is_token(response.token())) {
    return fail(StoreError::Kind::not_sent, "Authenticate was answered without a token");
  }
  token_ = response.token();
  return {};
}

StoreResult<bool> Connection::call(const Call& call, const Send& send) {
  StoreResult<bool> answer = false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (auto connected = connect(call.stop); !connected) return tl::unexpected(connected.error());
    answer = exchange(call, send);
    const bool token_expired = !answer && !endpoint_.user.empty() && token_.empty();
    if (!token_expired) break;
  }
  return answer;
}

StoreResult<bool> Connection::exchange(const Call& call, const Send& send) {
  const CommandInfo info = info_of(call);
  if (env_.before_command(info) == CommandFate::drop) {
    env_.after_command(info, CommandEnd::lost);
    close();
    return fail(StoreError::Kind::not_sent, "the connection was cut");
  }
  grpc::ClientContext context;
  const bool late = call.stop.stop_requested();
  prepare(context, late ? last_moment() : timeouts_.answer, token_);
  grpc::Status status;
  {
    const StopCallback on_stop(late ? std::stop_token() : call.stop, CancelOnStop{context});
    status = send(&context);
  }
  const bool answered = is_answer(status);
  const auto end = answered ? CommandEnd::answered : CommandEnd::lost;
  if (env_.after_command(info, end) == CommandFate::drop) {
    close();
    return fail(StoreError::Kind::unanswered, "the answer was lost");
  }
  if (status.ok()) return true;
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return false;
  if (wants_another_token(status)) token_.clear();
  if (answered) return fail(StoreError::Kind::rejected, status.error_message());
  close();
  if (call.stop.stop_requested()) {
    return fail(StoreError::Kind::unanswered, "stopped while waiting for the answer");
  }
  ++next_;
  return fail(StoreError::Kind::unanswered,
              status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
                  ? "no answer within " + format_duration(timeouts_)
                  : status.error_message());
}

StoreResult<GrantedLease> Connection::grant_lease(std::int64_t seconds, std::string_view lock,
                                                  const std::stop_token& stop) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(seconds);
  etcdserverpb::LeaseGrantResponse response;
  const auto done = call({"LeaseGrant", lock, stop},
                         send_by(&Channel::lease, &Leases::AsyncLeaseGrant, request, response));
  if (!done) return tl::unexpected(done.error());
  const auto granted = *done ? read_grant(response) : std::nullopt;
  if (!granted) return not_understood("LeaseGrant", "a lease and its TTL");
  return *granted;
}

StoreResult<void> Connection::revoke_lease(LeaseId lease, std::string_view lock,
                                           const std::stop_token& stop) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  etcdserverpb::LeaseRevokeResponse response;
  return call({"LeaseRevoke", lock, stop},
              send_by(&Channel::lease, &Leases::AsyncLeaseRevoke, request, response))
      .map([](bool) {});
}

StoreResult<std::optional<TxnResult>> Connection::transact(std::string_view lock, const Txn& txn,
                                                           const std::stop_token& stop) {
  const etcdserverpb::TxnRequest request = to_request(txn);
  etcdserverpb::TxnResponse response;
  const auto done =
      call({"Txn", lock, stop}, send_by(&Channel::kv, &Kv::AsyncTxn, request, response));
  if (!done) return tl::unexpected(done.error());
  if (!*done) return std::nullopt;
  auto result = read_txn(txn, response);
  if (!result) return not_understood("Txn", "an answer for each operation");
  return result;
}

StoreResult<std::int64_t> Connection::remove_range(std::string_view lock, const std::string& key,
                                                   const std::string& end,
                                                   const std::stop_token& stop) {
  etcdserverpb::DeleteRangeRequest request;
  request.set_key(key);
  request.set_range_end(end);
  etcdserverpb::DeleteRangeResponse response;
  const auto done = call({"DeleteRange", lock, stop},
                         send_by(&Channel::kv, &Kv::AsyncDeleteRange, request, response));
  if (!done) return tl::unexpected(done.error());
  if (response.deleted() < 0) return not_understood("DeleteRange", "a count");
  return response.deleted();
}

StoreResult<std::int64_t> Connection::remove_key(std::string_view lock, const std::string& key,
                                                 const std::stop_token& stop) {
  return remove_range(lock, key, {}, stop);
}

StoreResult<std::int64_t> Connection::remove_prefix(std::string_view lock,
                                                    const std::string& prefix,
                                                    const std::stop_token& stop) {
  return remove_range(lock, prefix, end_of_prefix(prefix), stop);
}

StoreResult<std::vector<Key>> Connection::list(std::string_view lock, const std::string& prefix,
                                               std::int64_t limit, const std::stop_token& stop) {
  etcdserverpb::RangeRequest request;
  request.set_key(prefix);
  request.set_range_end(end_of_prefix(prefix));
  request.set_limit(limit);
  request.set_sort_target(etcdserverpb::RangeRequest::CREATE);
  request.set_sort_order(etcdserverpb::RangeRequest::ASCEND);
  request.set_keys_only(true);
  etcdserverpb::RangeResponse response;
  return call({"Range", lock, stop}, send_by(&Channel::kv, &Kv::AsyncRange, request, response))
      .map([&](bool) { return read_keys(response); });
}

StoreResult<bool> Connection::key_exists(std::string_view lock, const std::string& key,
                                         const std::stop_token& stop) {
  etcdserverpb::RangeRequest request;
  request.set_key(key);
  request.set_keys_only(true);
  // Read from the member that is watched: its state is not newer than what the watch will report.
  request.set_serializable(true);
  etcdserverpb::RangeResponse response;
  return call({"Range", lock, stop}, send_by(&Channel::kv, &Kv::AsyncRange, request, response))
      .map([&](bool) { return response.kvs_size() > 0; });
}

StoreResult<ServerStatus> Connection::status(const std::stop_token& stop) {
  const etcdserverpb::StatusRequest request;
  etcdserverpb::StatusResponse response;
  return call({"Status", {}, stop},
              send_by(&Channel::maintenance, &etcdserverpb::Maintenance::Stub::AsyncStatus, request,
                      response))
      .map([&](bool) {
        return ServerStatus{printable(response.version()), response.raftterm()};
      });
}

grpc::Status Connection::watch(const Call& call, const std::string& watched,
                               grpc::ClientContext& context, bool& gone) {
  // Begins now: etcd delays the events of a watch that begins in the past by up to 100 ms.
  etcdserverpb::WatchRequest request;
  etcdserverpb::WatchCreateRequest& create = *request.mutable_create_request();
  create.set_key(watched);
  create.add_filters(etcdserverpb::WatchCreateRequest::NOPUT);
  etcdserverpb::WatchResponse response;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<etcdserverpb::WatchRequest, decltype(response)>>
      stream;
  // Looking for the key may close the channel, which must outlast its stream's operations.
  const std::shared_ptr<Completions> completions = channel_->completions;
  const auto read = [&] {
    return completions->run([&](void* tag) { stream->Read(&response, tag); });
  };
  const StopCallback on_stop(call.stop, CancelOnStop{context});
  bool open = completions->run([&](void* tag) {
    stream = channel_->watch->AsyncWatch(&context, &completions->queue(), tag);
  }) && completions->run([&](void* tag) { stream->Write(request, tag); }) &&
              read() && !response.canceled();
  if (open) {
    // The key may have been deleted before the watch began.
    const auto there = key_exists(call.lock, watched, call.stop);
    open = there.has_value();
    gone = there && !*there;
  }
  // Bounded by the deadline of the call.
  while (open && !gone && (open = read())) {
    gone = response.events_size() > 0 || response.canceled();
  }
  context.TryCancel();
  grpc::Status status;
  completions->run([&](void* tag) { stream->Finish(&status, tag); });
  return status;
}

StoreResult<bool> Connection::await_deletion(std::string_view lock, const std::string& watched,
                                             TimePoint until, const std::stop_token& stop) {
  if (auto connected = connect(stop); !connected) return tl::unexpected(connected.error());
  const CommandInfo info = info_of({"Watch", lock, stop}, true);
  if (env_.before_command(info) == CommandFate::drop) {
    env_.after_command(info, CommandEnd::lost);
    close();
    return fail(StoreError::Kind::not_sent, "the connection was cut");
  }
  grpc::ClientContext context;
  prepare(context, until - env_.now(), token_);
  bool gone = false;
  const grpc::Status status = watch({"Watch", lock, stop}, watched, context, gone);
  const bool over = env_.now() >= until || stop.stop_requested() ||
                    status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  const CommandEnd end = gone   ? CommandEnd::answered
                         : over ? CommandEnd::in_vain
                                : CommandEnd::lost;
  const CommandFate fate = env_.after_command(info, end);
  if (gone && fate == CommandFate::proceed) return true;
  if (over && fate == CommandFate::proceed) return false;
  close();
  if (wants_another_token(status)) token_.clear();
  return fail(StoreError::Kind::unanswered, "a watch ended: " + status.error_message());
}

}  // namespace lockbench::etcd
