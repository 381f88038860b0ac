#include "strategies/etcd/client/keep_alive.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "strategies/etcd/client/channel.h"

namespace lockbench::etcd {

using Request = etcdserverpb::LeaseKeepAliveRequest;
using Response = etcdserverpb::LeaseKeepAliveResponse;

/// A LeaseKeepAlive stream with one operation under way at a time, each with a timeout. Opened when
/// needed; closed, with the connection, on any failure.
class KeepAliveStream {
 public:
  KeepAliveStream(Connection& connection, Duration timeout)
      : connection_(connection), timeout_(timeout) {}
  KeepAliveStream(const KeepAliveStream&) = delete;
  KeepAliveStream& operator=(const KeepAliveStream&) = delete;
  ~KeepAliveStream() {
    close();
    completions_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (completions_.Next(&tag, &ok)) {
    }
  }

  StoreResult<void> open(const std::stop_token& stop) {
    auto connected = connection_.connect(stop);
    // A stream of an earlier channel is broken.
    const bool same = connection_.channel_ && connection_.channel_->channel == channel_;
    if (stream_ && !same) close();
    if (!connected || stream_) return connected;
    channel_ = connection_.channel_->channel;
    context_ = std::make_unique<grpc::ClientContext>();
    if (!connection_.token_.empty()) context_->AddMetadata("token", connection_.token_);
    stream_ = connection_.channel_->lease->AsyncLeaseKeepAlive(context_.get(), &completions_, this);
    return done(stop) ? StoreResult<void>() : broken(StoreError::Kind::not_sent);
  }

  StoreResult<void> write(const Request& request, const std::stop_token& stop) {
    stream_->Write(request, this);
    return done(stop) ? StoreResult<void>() : broken(StoreError::Kind::unanswered);
  }

  StoreResult<Response> read(const std::stop_token& stop) {
    Response response;
    stream_->Read(&response, this);
    if (!done(stop)) return tl::unexpected(broken(StoreError::Kind::unanswered).error());
    return response;
  }

  bool is_open() const { return stream_ != nullptr; }

 private:
  /// Waits for the operation under way. False if it failed or had to be cancelled.
  bool done(const std::stop_token& stop) {
    const StopCallback on_stop(stop, CancelOnStop{*context_});
    void* tag = nullptr;
    bool ok = false;
    const auto next = completions_.AsyncNext(&tag, &ok, from_now(timeout_));
    if (next == grpc::CompletionQueue::GOT_EVENT) return ok;
    context_->TryCancel();
    completions_.Next(&tag, &ok);
    return false;
  }

  StoreResult<void> broken(StoreError::Kind kind) {
    const std::string why = close();
    connection_.close();
    connection_.token_.clear();
    return connection_.fail(kind, "keeping leases alive: " + why);
  }

  /// Returns why the server, or the library, ended the stream.
  std::string close() {
    if (!stream_) return {};
    context_->TryCancel();
    grpc::Status status;
    stream_->Finish(&status, this);
    void* tag = nullptr;
    bool ok = false;
    completions_.Next(&tag, &ok);
    stream_.reset();
    context_.reset();  // refers to the channel too
    channel_.reset();
    return status.error_message();
  }

  Connection& connection_;
  const Duration timeout_;
  grpc::CompletionQueue completions_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> stream_;
  std::shared_ptr<grpc::Channel>
      channel_;  ///< the stream's; kept, so that no new channel has its address
};

namespace {

/// Renews leases on one LeaseKeepAlive stream that stays open from batch to batch. The tokens are
/// the lease ids in hex. etcd renews for the TTL that it granted, whatever the order asks for.
class LeaseRenewals : public RenewalChannel {
 public:
  LeaseRenewals(const Endpoint& endpoint, Duration timeout, Env& env)
      : env_(env), connection_(endpoint, timeout, env), stream_(connection_, timeout) {}

  void queue(std::string_view, std::string_view token, Duration) override {
    LeaseId lease = 0;
    std::from_chars(token.data(), token.data() + token.size(), lease, 16);
    queued_.push_back(lease);
  }

  void flush(const std::stop_token& stop) override {
    StoreResult<void> sent = stream_.open(stop);
    Request request;
    for (const LeaseId lease : std::exchange(queued_, {})) {
      if (sent && env_.before_command(command()) == CommandFate::drop) {
        env_.after_command(command(), CommandEnd::lost);
        sent = tl::unexpected(
            StoreError{.message = connection_.display() + ": the connection was cut"});
      } else if (sent) {
        ++under_way_;
        request.set_id(lease);
        sent = stream_.write(request, stop);
      }
    }
    if (!sent) failure_ = std::move(sent.error().message);
  }

  RenewalAnswer answer(const std::stop_token& stop) override {
    if (under_way_ == 0) return RenewalAnswer::failed;
    --under_way_;
    StoreResult<Response> response = tl::unexpected(StoreError{.message = failure_});
    if (stream_.is_open()) response = stream_.read(stop);
    const auto end = response ? CommandEnd::answered : CommandEnd::lost;
    const bool dropped = env_.after_command(command(), end) == CommandFate::drop;
    if (!response) failure_ = std::move(response.error().message);
    if (!response || dropped) return RenewalAnswer::failed;
    // A lease that is gone has no time to live.
    return response->ttl() > 0 ? RenewalAnswer::renewed : RenewalAnswer::not_owner;
  }

  std::string failure() const override { return failure_; }

 private:
  CommandInfo command() const {
    return {.store = "etcd",
            .endpoint = connection_.address(),
            .name = "LeaseKeepAlive",
            .key = {},
            .blocks = false};
  }

  Env& env_;
  Connection connection_;
  KeepAliveStream stream_;
  std::vector<LeaseId> queued_;
  int under_way_ = 0;
  std::string failure_;
};

}  // namespace

KeptLease::KeptLease(const Context& context, const Endpoint& endpoint, const GrantedLease& granted,
                     TimePoint asked_at, std::shared_ptr<const LeaseState> tied_to)
    : granted_(granted), state_(std::make_shared<LeaseState>(asked_at + granted.ttl, asked_at)) {
  RenewalScheduler& scheduler = renewal_scheduler(context.services);
  const std::string channel = endpoint.display() + " leases";
  // An answer that comes after the lease's end is useless.
  const Duration timeout = std::min(granted.ttl / 3, context.options.command_timeout);
  scheduler.provide_channel(
      channel, [&](Env& env) { return std::make_unique<LeaseRenewals>(endpoint, timeout, env); });
  renewal_ = scheduler.keep({.key = {},
                             .token = fmt::format("{:x}", granted.id),
                             .state = state_,
                             .granted_at = asked_at,
                             .ttl = granted.ttl,
                             .channels = {channel},
                             .tied_to = std::move(tied_to)});
}

}  // namespace lockbench::etcd
