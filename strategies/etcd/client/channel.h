#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "strategies/carrier.h"
#include "strategies/etcd/client/link.h"
#include "strategies/etcd/client/messages.h"
#include "strategies/etcd/client/rpc.grpc.pb.h"
#include "strategies/thread.h"

// Shared by the files that use gRPC.
namespace lockbench::etcd {

/// gRPC's queue of ended operations, one for all connections of the process, and a thread that
/// waits on it and wakes the callers. Callers may share a thread, so they cannot wait there
/// themselves.
class Completions {
 public:
  /// Shared by all connections; ends with the last. The error says why there is no thread.
  static tl::expected<std::shared_ptr<Completions>, std::string> shared();

  Completions() = default;
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  /// No operation may be under way.
  ~Completions() { queue_.Shutdown(); }

  grpc::CompletionQueue* queue() { return &queue_; }

 private:
  grpc::CompletionQueue queue_;
  Thread thread_;  ///< last: it ends with the queue, and is joined first
};

/// The end of one gRPC operation. Start the operation with tag(), and wait for its end: until then
/// gRPC writes to the caller's memory.
class Completion {
 public:
  Completion() = default;
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  void* tag() { return this; }
  /// False if it has not ended after that time.
  bool ends_within(Duration time) { return ends_by(Carrier::current().now() + time); }
  /// Waits for its end, so the call needs a deadline or a cancellation. False if it failed.
  bool succeeds();

 private:
  friend class Completions;

  bool ends_by(TimePoint deadline);

  const std::unique_ptr<Event> event_ = Carrier::current().make_event();
  bool ended_ = false;  ///< as the caller knows
  bool ok_ = false;
};

/// The address in gRPC's syntax: a name is looked up, a numeric address is not.
std::string grpc_target(const HostPort& member);

using Credentials = std::shared_ptr<grpc::ChannelCredentials>;

/// For all channels to the endpoint's members. The error names the file that cannot be read.
tl::expected<Credentials, std::string> credentials_of(const Endpoint& endpoint);

/// Why there is no connection to this member, as gRPC does not say: TLS on one side only, or a
/// refused certificate. Probes the member, for at most `within`.
std::string why_silent(const HostPort& member, const Endpoint& endpoint, Duration within,
                       const std::stop_token& stop);

template <class Request, class Response>
class GrpcStream;
using WatchStream = GrpcStream<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse>;

/// A channel and its stubs.
class GrpcLink final : public Link {
 public:
  GrpcLink(const HostPort& member, const Endpoint& endpoint, const Credentials& credentials,
           std::shared_ptr<Completions> its_completions);

  bool ready() override { return channel->GetState(false) == GRPC_CHANNEL_READY; }
  grpc::Status call(std::string_view method, const Message& request, Message& response,
                    const std::string& token, const Limits& limits) override;
  std::unique_ptr<Stream> make_stream(std::string_view method, const std::string& token,
                                      Duration longest) override;
  std::unique_ptr<WatchStream> make_watch(const std::string& token, Duration longest);
  /// Waits until it is connected. The error says why it is not.
  tl::expected<void, std::string> await_ready(const Links::Order& order);

  const std::shared_ptr<Completions> completions;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<etcdserverpb::Auth::Stub> auth;
  const std::unique_ptr<etcdserverpb::KV::Stub> kv;
  const std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  const std::unique_ptr<etcdserverpb::Maintenance::Stub> maintenance;
  const std::unique_ptr<etcdserverpb::Watch::Stub> watch;
};

/// Sets the deadline, unless it is Duration::max(), and the login's token.
void prepare(grpc::ClientContext& context, Duration timeout, const std::string& token);

/// Cancels a call when a stop is requested.
struct CancelOnStop {
  grpc::ClientContext& context;
  void operator()() const { context.TryCancel(); }
};
using StopCallback = std::stop_callback<CancelOnStop>;

template <class Request, class Response>
class GrpcStream final : public Stream {
 public:
  using Calls = grpc::ClientAsyncReaderWriter<Request, Response>;
  using Start =
      std::function<std::unique_ptr<Calls>(grpc::ClientContext*, grpc::CompletionQueue*, void*)>;

  /// The whole stream may take `longest`. Keeps the parts of the link that it needs; `start` may
  /// need others.
  GrpcStream(const GrpcLink& link, const std::string& token, Duration longest, Start start)
      : channel_(link.channel), completions_(link.completions), start_(std::move(start)) {
    prepare(context_, longest, token);
  }
  GrpcStream(const GrpcStream&) = delete;
  GrpcStream& operator=(const GrpcStream&) = delete;
  ~GrpcStream() override { finish_within({}); }

  bool begin(const Limits& limits) override {
    return run(limits, [&](void* tag) { stream_ = start_(&context_, completions_->queue(), tag); });
  }
  bool write(const Message& request, const Limits& limits) override {
    return run(limits,
               [&](void* tag) { stream_->Write(static_cast<const Request&>(request), tag); });
  }
  bool read(const Limits& limits) override {
    return run(limits, [&](void* tag) { stream_->Read(&response_, tag); });
  }
  /// The same in steps: begin_read(), has_read() until it is true, end_read().
  void begin_read() {
    reading_.emplace();
    stream_->Read(&response_, reading_->tag());
  }
  bool has_read(Duration longest) { return reading_->ends_within(longest); }
  bool end_read() {
    const bool read = reading_->succeeds();
    reading_.reset();
    return read;
  }
  const Response& response() const override { return response_; }

  grpc::Status finish() override { return finish_within({}); }
  /// The same; if it ends within `patience`, the status says why, too.
  grpc::Status finish_within(Duration patience) {
    grpc::Status status;
    if (!stream_) return status;
    if (reading_) {
      context_.TryCancel();
      end_read();
    }
    Completion operation;
    stream_->Finish(&status, operation.tag());
    if (!operation.ends_within(patience)) context_.TryCancel();
    operation.succeeds();
    stream_.reset();
    return status;
  }

 private:
  template <class Operation>
  bool run(const Limits& limits, const Operation& begin_operation) {
    const StopCallback on_stop(limits.stop, CancelOnStop{context_});
    Completion operation;
    begin_operation(operation.tag());
    const bool in_time = limits.longest == Duration::max() || operation.ends_within(limits.longest);
    if (!in_time) context_.TryCancel();
    return operation.succeeds() && in_time;
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::shared_ptr<Completions> completions_;
  Start start_;
  grpc::ClientContext context_;  // refers to the channel
  std::unique_ptr<Calls> stream_;
  Response response_;  // gRPC writes to it until a read has ended
  std::optional<Completion> reading_;
};

}  // namespace lockbench::etcd
