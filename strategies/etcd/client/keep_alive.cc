#include "strategies/etcd/client/keep_alive.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
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
  ~KeepAliveStream() { close(); }

  StoreResult<void> open(const std::stop_token& stop) {
    auto connected = connection_.connect(stop);
    // A stream of an earlier channel is broken.
    const bool same = connection_.channel_ && connection_.channel_->channel == channel_;
    if (stream_ && !same) close();
    if (!connected || stream_) return connected;
    channel_ = connection_.channel_->channel;
    completions_ = connection_.channel_->completions;
    context_ = std::make_unique<grpc::ClientContext>();
    if (!connection_.token_.empty()) context_->AddMetadata("token", connection_.token_);
    const bool opened = done(stop, [this](void* tag) {
      stream_ = connection_.channel_->lease->AsyncLeaseKeepAlive(context_.get(),
                                                                 &completions_->queue(), tag);
    });
    return opened ? StoreResult<void>() : broken(StoreError::Kind::not_sent);
  }

  StoreResult<void> write(const Request& request, const std::stop_token& stop) {
    const bool written = done(stop, [&](void* tag) { stream_->Write(request, tag); });
    return written ? StoreResult<void>() : broken(StoreError::Kind::unanswered);
  }

  /// The answer for this lease, which is the oldest without one.
  StoreResult<Response> read(LeaseId lease, const std::stop_token& stop) {
    Response response;
    const bool answered = done(stop, [&](void* tag) { stream_->Read(&response, tag); });
    if (answered && response.id() == lease) return response;
    auto error = broken(StoreError::Kind::unanswered).error();
    if (!answered) return tl::unexpected(std::move(error));
    return connection_.fail(error.kind, "keeping leases alive: an answer for another lease");
  }

  bool is_open() const { return stream_ != nullptr; }

 private:
  /// False if the operation failed or had to be cancelled.
  template <class Start>
  bool done(const std::stop_token& stop, const Start& start) {
    const StopCallback on_stop(stop, CancelOnStop{*context_});
    Completion operation(*completions_);
    start(operation.tag());
    const bool in_time = operation.ends_within(timeout_);
    if (!in_time) context_->TryCancel();
    return operation.succeeds() && in_time;
  }

  StoreResult<void> broken(StoreError::Kind kind) {
    const std::string why = close();
    connection_.close();
    // A member without a leader can be reached, but keeps nothing alive.
    ++connection_.next_;
    connection_.token_.clear();
    return connection_.fail(kind, "keeping leases alive: " + why);
  }

  /// Returns why the server, or the library, ended the stream.
  std::string close() {
    if (!stream_) return {};
    context_->TryCancel();
    grpc::Status status;
    completions_->run([&](void* tag) { stream_->Finish(&status, tag); });
    stream_.reset();
    context_.reset();  // refers to the channel too
    channel_.reset();
    completions_.reset();
    return status.error_message();
  }

  Connection& connection_;
  const Duration timeout_;
  std::shared_ptr<Completions> completions_;  ///< the stream's, like the rest
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> stream_;
  std::shared_ptr<grpc::Channel>
      channel_;  ///< the stream's; kept, so that no new channel has its address
};

namespace {

/// Renews leases on one LeaseKeepAlive stream that stays open from batch to batch. A token is the
/// ids of the leases that are renewed together, in hex, each followed by a space. etcd renews for
/// the TTL that it granted, whatever the order asks for.
class LeaseRenewals : public RenewalChannel {
 public:
  LeaseRenewals(const Endpoint& endpoint, Duration timeout, Env& env)
      : env_(env), connection_(endpoint, timeout, env), stream_(connection_, timeout) {}

  void queue(std::string_view, std::string_view token, Duration) override {
    int leases = 0;
    for (const char *at = token.data(), *end = at + token.size(); at != end; ++at, ++leases) {
      LeaseId lease = 0;
      at = std::from_chars(at, end, lease, 16).ptr;
      queued_.push_back(lease);
    }
    unanswered_.push_back(leases);
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
        under_way_.push_back(lease);
        request.set_id(lease);
        sent = stream_.write(request, stop);
      }
    }
    if (!sent) failure_ = std::move(sent.error().message);
  }

  /// The worst of the answers for the leases of a token.
  RenewalAnswer answer(const std::stop_token& stop) override {
    auto worst = RenewalAnswer::renewed;
    for (int lease = 0; lease < unanswered_.front(); ++lease) {
      worst = std::max(worst, answer_for_one(stop));
    }
    unanswered_.pop_front();
    return worst;
  }

  std::string failure() const override { return failure_; }

 private:
  RenewalAnswer answer_for_one(const std::stop_token& stop) {
    if (under_way_.empty()) return RenewalAnswer::failed;
    const LeaseId lease = under_way_.front();
    under_way_.pop_front();
    StoreResult<Response> response = tl::unexpected(StoreError{.message = failure_});
    if (stream_.is_open()) response = stream_.read(lease, stop);
    const auto end = response ? CommandEnd::answered : CommandEnd::lost;
    const bool dropped = env_.after_command(command(), end) == CommandFate::drop;
    if (!response) failure_ = std::move(response.error().message);
    if (!response || dropped) return RenewalAnswer::failed;
    // A lease that is gone has no time to live.
    return response->ttl() > 0 ? RenewalAnswer::renewed : RenewalAnswer::not_owner;
  }

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
  std::deque<int> unanswered_;  ///< the number of leases of each renewal
  std::deque<LeaseId> under_way_;
  std::string failure_;
};

}  // namespace

KeptLease::KeptLease(const Context& context, const Endpoint& endpoint, const GrantedLease& granted,
                     TimePoint asked_at, const std::vector<LeaseId>& outlasting)
    : granted_(granted), state_(std::make_shared<LeaseState>(asked_at + granted.ttl, asked_at)) {
  RenewalScheduler& scheduler = renewal_scheduler(context.services);
  const std::string channel = endpoint.display() + " leases";
  // An answer that comes after the lease's end is useless.
  const Duration timeout =
      std::min<Duration>(std::chrono::floor<std::chrono::milliseconds>(granted.ttl / 3),
                         context.options.command_timeout);
  scheduler.provide_channel(
      channel, [&](Env& env) { return std::make_unique<LeaseRenewals>(endpoint, timeout, env); });
  std::string token;
  for (const LeaseId id : outlasting) token += fmt::format("{:x} ", id);
  token += fmt::format("{:x} ", granted_.id);
  renewal_ = scheduler.keep({.key = {},
                             .token = std::move(token),
                             .state = state_,
                             .granted_at = asked_at,
                             .ttl = granted.ttl,
                             .channels = {channel}});
}

}  // namespace lockbench::etcd
