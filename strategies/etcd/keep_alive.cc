#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "strategies/etcd/client/channel.h"
#include "strategies/etcd/lock.h"

namespace lockbench::etcd {
namespace {

/// Renews leases on one LeaseKeepAlive stream that stays open from batch to batch, each operation
/// with a timeout. Any failure closes the stream, and the connection. A token is the ids of the
/// leases that are renewed together, in hex, each followed by a space. etcd renews for the TTL that
/// it granted, whatever the order asks for.
class LeaseRenewals : public RenewalChannel, private Connection {
 public:
  LeaseRenewals(const Endpoint& endpoint, Duration timeout, Env& env)
      : Connection(endpoint, timeout, env), timeout_(timeout) {}

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
    bool sent = open_stream(stop);
    etcdserverpb::LeaseKeepAliveRequest request;
    for (const LeaseId lease : std::exchange(queued_, {})) {
      if (!sent) return;
      if (env().before_command(command()) == CommandFate::drop) {
        env().after_command(command(), CommandEnd::lost);
        failure_ = display() + ": the connection was cut";
        return;
      }
      under_way_.push_back(lease);
      request.set_id(lease);
      sent = stream_->write(request, stop, timeout_) || broken();
    }
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
  bool open_stream(const std::stop_token& stop) {
    const auto connected = connect(stop);
    // A stream of an earlier channel is broken.
    if (stream_ && !(channel() != nullptr && stream_->is_of(*channel()))) stream_.reset();
    if (!connected) failure_ = connected.error().message;
    if (!connected || stream_) return connected.has_value();
    stream_.emplace(*channel(), token());
    return stream_->begin(*channel()->lease, &etcdserverpb::Lease::Stub::AsyncLeaseKeepAlive, stop,
                          timeout_) ||
           broken();
  }

  RenewalAnswer answer_for_one(const std::stop_token& stop) {
    if (under_way_.empty()) return RenewalAnswer::failed;
    const LeaseId lease = under_way_.front();
    under_way_.pop_front();
    const bool read = stream_ && (stream_->read(stop, timeout_) || broken());
    const bool fits =
        read && (stream_->response().id() == lease || broken("an answer for another lease"));
    const bool gone = fits && stream_->response().ttl() <= 0;
    const auto end = fits ? CommandEnd::answered : CommandEnd::lost;
    const bool dropped = env().after_command(command(), end) == CommandFate::drop;
    if (!fits || dropped) return RenewalAnswer::failed;
    return gone ? RenewalAnswer::not_owner : RenewalAnswer::renewed;
  }

  /// Closes what is of no use any more; false. `why`: if the stream itself does not know.
  bool broken(std::string why = {}) {
    const grpc::Status status = stream_->finish();
    stream_.reset();
    if (why.empty()) why = status.error_message();
    failure_ = fail(StoreError::Kind::unanswered, "keeping leases alive: " + why).value().message;
    // A member without a leader can be reached, but keeps nothing alive.
    leave_member();
    forget_token();
    return false;
  }

  CommandInfo command() const { return info_of({"LeaseKeepAlive", {}, {}}); }

  const Duration timeout_;
  std::optional<Stream<etcdserverpb::LeaseKeepAliveRequest, etcdserverpb::LeaseKeepAliveResponse>>
      stream_;
  std::vector<LeaseId> queued_;
  std::deque<int> unanswered_;  ///< the number of leases of each renewal
  std::deque<LeaseId> under_way_;
  std::string failure_;
};

}  // namespace

std::shared_ptr<Renewal> keep_alive(const Context& context, const Endpoint& endpoint,
                                    const std::vector<LeaseId>& leases, Duration ttl,
                                    TimePoint asked_at, std::shared_ptr<LeaseState> state) {
  RenewalScheduler& scheduler = renewal_scheduler(context.services);
  const std::string channel = endpoint.display() + " leases";
  // An answer that comes after the lease's end is useless.
  const Duration timeout = std::min<Duration>(
      std::chrono::floor<std::chrono::milliseconds>(ttl / 3), context.options.command_timeout);
  scheduler.provide_channel(
      channel, [&](Env& env) { return std::make_unique<LeaseRenewals>(endpoint, timeout, env); });
  std::string token;
  for (const LeaseId id : leases) token += fmt::format("{:x} ", id);
  return scheduler.keep({.key = {},
                         .token = std::move(token),
                         .state = std::move(state),
                         .granted_at = asked_at,
                         .ttl = ttl,
                         .channels = {channel}});
}

}  // namespace lockbench::etcd
