#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <stop_token>
#include <string>

#include "strategies/duration.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/etcd/client/rpc.grpc.pb.h"

// Shared by the two files that use gRPC.
namespace lockbench::etcd {

/// A channel and its stubs.
struct Connection::Channel {
  explicit Channel(const HostPort& member);

  bool ready() const { return channel->GetState(false) == GRPC_CHANNEL_READY; }

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<etcdserverpb::KV::Stub> kv;
  std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  std::unique_ptr<etcdserverpb::Watch::Stub> watch;
};

/// A deadline for gRPC, on the monotonic clock.
gpr_timespec from_now(Duration time);

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
