#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <stop_token>
#include <string>

#include "strategies/duration.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/etcd/client/rpc.grpc.pb.h"

// What the files that speak gRPC share.
namespace lockbench::etcd {

/// A channel and what can be asked for on it.
struct Connection::Channel {
  explicit Channel(const Address& member);

  bool ready() const { return channel->GetState(false) == GRPC_CHANNEL_READY; }

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<etcdserverpb::KV::Stub> kv;
  std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  std::unique_ptr<etcdserverpb::Watch::Stub> watch;
};

/// As gRPC takes a deadline; on the monotonic clock.
gpr_timespec from_now(Duration time);

/// The deadline and the user's token.
void prepare(grpc::ClientContext& context, Duration timeout, const std::string& token);

/// The token has run out, or users were changed since.
bool wants_another_token(const grpc::Status& status);

/// Ends a call when the stop comes.
struct CancelOnStop {
  grpc::ClientContext& context;
  void operator()() const { context.TryCancel(); }
};
using StopCallback = std::stop_callback<CancelOnStop>;

}  // namespace lockbench::etcd
