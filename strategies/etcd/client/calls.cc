// What is asked of etcd.

#include "strategies/etcd/client/channel.h"
#include "strategies/etcd/client/connection.h"

namespace lockbench::etcd {

StoreResult<GrantedLease> Connection::grant_lease(std::int64_t seconds, std::string_view key,
                                                  const std::stop_token& stop) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(seconds);
  etcdserverpb::LeaseGrantResponse response;
  const auto done = call({"LeaseGrant", key, stop}, [&](grpc::ClientContext* context) {
    return channel_->lease->LeaseGrant(context, request, &response);
  });
  if (!done) return tl::unexpected(done.error());
  if (!*done || response.ttl() <= 0) {
    return fail(StoreError::Kind::rejected, "no lease was granted");
  }
  return GrantedLease{.id = response.id(), .ttl = std::chrono::seconds(response.ttl())};
}

StoreResult<void> Connection::revoke_lease(LeaseId lease, std::string_view key,
                                           const std::stop_token& stop) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  etcdserverpb::LeaseRevokeResponse response;
  const auto done = call({"LeaseRevoke", key, stop}, [&](grpc::ClientContext* context) {
    return channel_->lease->LeaseRevoke(context, request, &response);
  });
  if (!done) return tl::unexpected(done.error());
  return {};
}

StoreResult<std::optional<etcdserverpb::TxnResponse>> Connection::transact(
    std::string_view name, std::string_view key, const etcdserverpb::TxnRequest& request,
    const std::stop_token& stop) {
  std::optional<etcdserverpb::TxnResponse> response(std::in_place);
  const auto done = call({name, key, stop}, [&](grpc::ClientContext* context) {
    return channel_->kv->Txn(context, request, &*response);
  });
  if (!done) return tl::unexpected(done.error());
  if (!*done) response.reset();
  return response;
}

StoreResult<std::int64_t> Connection::remove(std::string_view key,
                                             const etcdserverpb::DeleteRangeRequest& request,
                                             const std::stop_token& stop) {
  etcdserverpb::DeleteRangeResponse response;
  const auto done = call({"DeleteRange", key, stop}, [&](grpc::ClientContext* context) {
    return channel_->kv->DeleteRange(context, request, &response);
  });
  if (!done) return tl::unexpected(done.error());
  return response.deleted();
}

StoreResult<etcdserverpb::RangeResponse> Connection::range(
    std::string_view key, const etcdserverpb::RangeRequest& request, const std::stop_token& stop) {
  etcdserverpb::RangeResponse response;
  const auto done = call({"Range", key, stop}, [&](grpc::ClientContext* context) {
    return channel_->kv->Range(context, request, &response);
  });
  if (!done) return tl::unexpected(done.error());
  return response;
}

StoreResult<etcdserverpb::StatusResponse> Connection::status(const std::stop_token& stop) {
  etcdserverpb::StatusResponse response;
  const auto done = call({"Status", {}, stop}, [&](grpc::ClientContext* context) {
    return etcdserverpb::Maintenance::NewStub(channel_->channel)->Status(context, {}, &response);
  });
  if (!done) return tl::unexpected(done.error());
  return response;
}

StoreResult<bool> Connection::exists(std::string_view key, const std::string& wanted,
                                     const std::stop_token& stop) {
  etcdserverpb::RangeRequest request;
  request.set_key(wanted);
  request.set_keys_only(true);
  // As the member that is watched knows it: no later than what it will tell of.
  request.set_serializable(true);
  const auto answer = range(key, request, stop);
  if (!answer) return tl::unexpected(answer.error());
  return answer->kvs_size() > 0;
}

StoreResult<bool> Connection::await_deletion(std::string_view key, const std::string& watched,
                                             TimePoint until, const std::stop_token& stop) {
  if (auto connected = connect(stop); !connected) return tl::unexpected(connected.error());
  const CommandInfo info = told({"Watch", key, stop}, true);
  if (env_.before_command(info) == CommandFate::drop) {
    env_.after_command(info, CommandEnd::lost);
    close();
    return fail(StoreError::Kind::not_sent, "the connection was cut");
  }
  etcdserverpb::WatchRequest request;
  etcdserverpb::WatchCreateRequest& create = *request.mutable_create_request();
  // From now on: one that were to begin in the past would have to wait for up to 100 ms to be told.
  create.set_key(watched);
  create.add_filters(etcdserverpb::WatchCreateRequest::NOPUT);
  grpc::ClientContext context;
  prepare(context, until - env_.now(), token_);
  bool gone = false;
  grpc::Status status;
  {
    const StopCallback on_stop(stop, CancelOnStop{context});
    const auto stream = channel_->watch->Watch(&context);
    etcdserverpb::WatchResponse response;
    bool open = stream->Write(request) && stream->Read(&response) && !response.canceled();
    if (open) {
      // It may have been deleted before anybody watched.
      const auto there = exists(key, watched, stop);
      open = there.has_value();
      gone = there && !*there;
    }
    // Bounded by the deadline of the call.
    while (open && !gone && (open = stream->Read(&response))) {
      gone = response.events_size() > 0 || response.canceled();
    }
    context.TryCancel();
    status = stream->Finish();
  }
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
