#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "strategies/duration.h"
#include "strategies/etcd/client/completions.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/etcd/client/rpc.grpc.pb.h"

// Shared by the files that use gRPC.
namespace lockbench::etcd {

using Credentials = std::shared_ptr<grpc::ChannelCredentials>;

/// For all channels to the endpoint. The error names the file that cannot be read.
tl::expected<Credentials, std::string> credentials_of(const Endpoint& endpoint);

/// Why gRPC has no connection to this member, which it does not tell: one that lacks TLS, or has a
/// certificate that is refused. Looks for it within that time.
std::string why_silent(const HostPort& member, const Endpoint& endpoint, Duration within,
                       const std::stop_token& stop);

/// A channel and its stubs.
struct Connection::Channel {
  Channel(const HostPort& member, const Endpoint& endpoint, const Credentials& credentials,
          std::shared_ptr<Completions> its_completions);

  bool ready() const { return channel->GetState(false) == GRPC_CHANNEL_READY; }
  /// Waits until the state is another, for at most that time.
  void await_change(grpc_connectivity_state state, Duration longest);
  /// For a call that has been started with queue(): waits for its end.
  template <class Call, class Response>
  grpc::Status finish(const Call& call, Response& response) {
    grpc::Status status;
    completions->run([&](void* tag) { call->Finish(&response, &status, tag); });
    return status;
  }
  grpc::CompletionQueue* queue() { return &completions->queue(); }

  std::shared_ptr<Completions> completions;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<etcdserverpb::Auth::Stub> auth;
  std::unique_ptr<etcdserverpb::KV::Stub> kv;
  std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  std::unique_ptr<etcdserverpb::Maintenance::Stub> maintenance;
  std::unique_ptr<etcdserverpb::Watch::Stub> watch;
};

template <class Stub, class Start, class Request, class Response>
Connection::Send Connection::send_by(std::unique_ptr<Stub> Channel::*stub, Start start,
                                     const Request& request, Response& response) {
  return [this, stub, start, &request, &response](grpc::ClientContext* context) {
    Stub& service = *((*channel_).*stub);
    return channel_->finish((service.*start)(context, request, channel_->queue()), response);
  };
}

/// Sets the deadline and the login's token.
void prepare(grpc::ClientContext& context, Duration timeout, const std::string& token);

/// The token has expired, or users or roles were changed since the login.
bool wants_another_token(const grpc::Status& status);

/// Cancels a call when the stop comes.
struct CancelOnStop {
  grpc::ClientContext& context;
  void operator()() const { context.TryCancel(); }
};
using StopCallback = std::stop_callback<CancelOnStop>;

}  // namespace lockbench::etcd
