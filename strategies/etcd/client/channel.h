#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "strategies/carrier.h"
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

/// A channel and its stubs.
struct Connection::Channel {
  Channel(const HostPort& member, const Endpoint& endpoint, const Credentials& credentials,
          std::shared_ptr<Completions> its_completions);

  bool ready() const { return channel->GetState(false) == GRPC_CHANNEL_READY; }
  /// Waits for another state, for at most `longest`.
  void await_change(grpc_connectivity_state state, Duration longest);
  /// Waits for the end of a call that was started on the queue.
  template <class Call, class Response>
  grpc::Status finish(const Call& call, Response& response) {
    grpc::Status status;
    Completion operation;
    call->Finish(&response, &status, operation.tag());
    operation.succeeds();
    return status;
  }

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
    const auto begun = (service.*start)(context, request, channel_->completions->queue());
    return channel_->finish(begun, response);
  };
}

/// What the status of a call says about its request.
enum class Verdict {
  done,
  absent,      ///< its object does not exist
  refused,     ///< it took no effect
  logged_out,  ///< refused: the token has expired, or users or roles were changed since the login
  late,        ///< the deadline has passed
  unknown,     ///< it may have taken effect
};
Verdict verdict_of(const grpc::Status& status);

/// Sets the deadline, unless it is Duration::max(), and the login's token.
void prepare(grpc::ClientContext& context, Duration timeout, const std::string& token);

/// Cancels a call when a stop is requested.
struct CancelOnStop {
  grpc::ClientContext& context;
  void operator()() const { context.TryCancel(); }
};
using StopCallback = std::stop_callback<CancelOnStop>;

/// A stream in both directions, with one operation under way at a time. An operation returns false
/// if it failed, or was cancelled after `longest` or by the stop; the stream is then broken.
template <class Request, class Response>
class Stream {
 public:
  /// The whole stream may take `timeout`. Keeps the parts of the channel that it needs.
  template <class Channel>
  Stream(const Channel& channel, const std::string& token, Duration timeout = Duration::max())
      : channel_(channel.channel), completions_(channel.completions) {
    prepare(context_, timeout, token);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { finish(); }

  template <class Channel>
  bool is_of(const Channel& channel) const {
    return channel.channel == channel_;
  }
  template <class Stub, class Method>
  bool begin(Stub& stub, Method method, const std::stop_token& stop,
             Duration longest = Duration::max()) {
    return run(stop, longest,
               [&](void* tag) { stream_ = (stub.*method)(&context_, completions_->queue(), tag); });
  }
  bool write(const Request& request, const std::stop_token& stop,
             Duration longest = Duration::max()) {
    return run(stop, longest, [&](void* tag) { stream_->Write(request, tag); });
  }
  /// Into response().
  bool read(const std::stop_token& stop, Duration longest = Duration::max()) {
    return run(stop, longest, [&](void* tag) { stream_->Read(&response_, tag); });
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
  const Response& response() const { return response_; }

  /// Ends the stream. If it had ended before, or does so within `patience`, the status says why.
  grpc::Status finish(Duration patience = {}) {
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
  template <class Start>
  bool run(const std::stop_token& stop, Duration longest, const Start& start) {
    const StopCallback on_stop(stop, CancelOnStop{context_});
    Completion operation;
    start(operation.tag());
    const bool in_time = longest == Duration::max() || operation.ends_within(longest);
    if (!in_time) context_.TryCancel();
    return operation.succeeds() && in_time;
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::shared_ptr<Completions> completions_;
  grpc::ClientContext context_;  // refers to the channel
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> stream_;
  Response response_;  // gRPC writes to it until a read has ended
  std::optional<Completion> reading_;
};

}  // namespace lockbench::etcd
