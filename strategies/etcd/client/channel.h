#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "strategies/duration.h"
#include "strategies/env.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/etcd/client/rpc.grpc.pb.h"
#include "strategies/thread.h"

// Shared by the files that use gRPC.
namespace lockbench::etcd {

class Completion;

/// Where gRPC tells which operations have ended. A caller with a thread of its own looks there
/// itself: a switch between threads would add 35 us to the 105 of a call on loopback. Callers that
/// share a thread must not block it: all those of the process have one queue, and a thread that
/// looks there and wakes them.
class Completions {
 public:
  /// For whatever the caller runs on. The error says that there is no thread.
  static tl::expected<std::shared_ptr<Completions>, std::string> for_caller();

  Completions() = default;
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  /// Nothing may be under way any more.
  ~Completions() { queue_.Shutdown(); }

  grpc::CompletionQueue& queue() { return queue_; }
  /// Has an operation started with a tag, and waits for its end, which the call's deadline or its
  /// cancellation must bring. False if it failed.
  template <class Start>
  bool run(const Start& start);

 private:
  friend class Completion;

  /// Looks until `deadline` or, if it is given, the end of `awaited`.
  void look(const Completion* awaited, gpr_timespec deadline);

  grpc::CompletionQueue queue_;
  Thread thread_;  ///< last: it ends with the queue, and is joined first
};

/// The end of one operation of gRPC, which is to be started with tag(). Whoever made it must wait
/// for it, as gRPC writes to the caller's memory until then.
class Completion {
 public:
  explicit Completion(Completions& completions);
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  void* tag() { return this; }
  /// False if it has not ended after that time.
  bool ends_within(Duration time);
  /// Waits for its end, which the call's deadline or its cancellation must bring. False if it
  /// failed.
  bool succeeds();

 private:
  friend class Completions;

  bool ends_by(TimePoint deadline);
  void end(bool ok) noexcept;

  Completions& completions_;
  std::unique_ptr<Event> event_;  ///< null: the caller looks itself
  bool ended_ = false;            ///< as the caller knows
  bool ok_ = false;
};

template <class Start>
bool Completions::run(const Start& start) {
  Completion operation(*this);
  start(operation.tag());
  return operation.succeeds();
}

/// A deadline for gRPC, on the monotonic clock.
gpr_timespec from_now(Duration time);

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
