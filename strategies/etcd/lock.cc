#include "strategies/etcd/lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <set>
#include <utility>

#include "strategies/etcd/client/link.h"
#include "strategies/etcd/client/messages.h"
#include "strategies/waiting/retry.h"

namespace lockbench::etcd {
namespace {

/// The pause after a failed watch, so that a store that refuses watches is not asked in a tight
/// loop.
constexpr Duration kAfterFailure = std::chrono::milliseconds(10);
/// The most places still to be left; further ones end with their session.
constexpr std::size_t kMaxPending = 64;

/// Renews leases on one LeaseKeepAlive stream that stays open from batch to batch, each operation
/// with a timeout. Any failure closes the stream, and the connection. A token holds the ids of the
/// leases that are renewed together, in hex, each followed by a space. etcd renews for the TTL that
/// it granted and ignores the TTL of the order.
class LeaseRenewals : public RenewalChannel, private Connection {
 public:
  LeaseRenewals(const Endpoint& endpoint, Duration timeout, Env& env, Links& links)
      : Connection(endpoint, timeout, env, links), timeout_(timeout) {}

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
      sent = stream_->write(request, {stop, timeout_}) || broken();
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
    // A stream of an earlier link is broken.
    if (link() == nullptr || stream_on_ != link_number()) stream_.reset();
    if (!connected) failure_ = connected.error().message;
    if (!connected || stream_) return connected.has_value();
    stream_ = link()->make_stream(kLeaseKeepAlive.name, token(), Duration::max());
    stream_on_ = link_number();
    return stream_->begin({stop, timeout_}) || broken();
  }

  RenewalAnswer answer_for_one(const std::stop_token& stop) {
    if (under_way_.empty()) return RenewalAnswer::failed;
    const LeaseId lease = under_way_.front();
    under_way_.pop_front();
    const bool read = stream_ && (stream_->read({stop, timeout_}) || broken());
    const bool fits = read && (response().id() == lease || broken("an answer for another lease"));
    const bool gone = fits && response().ttl() <= 0;
    const auto end = fits ? CommandEnd::answered : CommandEnd::lost;
    const bool dropped = env().after_command(command(), end) == CommandFate::drop;
    if (!fits || dropped) return RenewalAnswer::failed;
    return gone ? RenewalAnswer::not_owner : RenewalAnswer::renewed;
  }

  /// Closes the stream and the connection; returns false. `why` is for a stream whose status gives
  /// no reason.
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

  CommandInfo command() const { return info_of({kLeaseKeepAlive.name, {}, {}}); }
  const etcdserverpb::LeaseKeepAliveResponse& response() const {
    return static_cast<const etcdserverpb::LeaseKeepAliveResponse&>(stream_->response());
  }

  const Duration timeout_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t stream_on_ = 0;  ///< the link of that number
  std::vector<LeaseId> queued_;
  std::deque<int> unanswered_;  ///< the number of leases of each renewal
  std::deque<LeaseId> under_way_;
  std::string failure_;
};

/// Has the run's scheduler keep etcd leases alive from their grant on. The last of `leases` has
/// this TTL, and `state` shows its validity. The others have longer TTLs and are renewed just
/// before it, so once renewals stop they expire later by the difference.
std::shared_ptr<Renewal> keep_alive(const Context& context, const Endpoint& endpoint,
                                    const std::vector<LeaseId>& leases, Duration ttl,
                                    TimePoint asked_at, std::shared_ptr<LeaseState> state) {
  RenewalScheduler& scheduler = renewal_scheduler(context.services);
  const Duration timeout = renewal_timeout(ttl / 3, context.options.command_timeout);
  const std::string channel = fmt::format("{} leases {}", context.urls.front(), timeout.count());
  Links& links = context.services.get<Links>();
  scheduler.provide_channel(channel, [&](Env& env) {
    return std::make_unique<LeaseRenewals>(endpoint, timeout, env, links);
  });
  std::string token;
  for (const LeaseId id : leases) token += fmt::format("{:x} ", id);
  return scheduler.keep({.key = {},
                         .token = std::move(token),
                         .state = std::move(state),
                         .granted_at = asked_at,
                         .ttl = ttl,
                         // etcd's client keeps its stream open and tries again after 500 ms
                         // (client/v3/lease.go, retryConnWait), not at the next third of the TTL.
                         .timing = {.retries_soon = true},
                         .channels = {channel}});
}

}  // namespace

LeaseQueueLock::LeaseQueueLock(const Context& context)
    : context_(context),
      endpoint_(endpoints_of(context, parse_endpoint).front()),
      env_(context.env),
      etcd_(endpoint_, context.options.timeouts(), context.env, context.services.get<Links>()) {}

LeaseQueueLock::~LeaseQueueLock() {
  try {
    // In the order of their leases, so that a simulation is the same each time.
    std::set<std::pair<LeaseId, std::shared_ptr<Session>>> all;
    for (const auto& [seconds, session] : sessions_) all.emplace(session->leases.front(), session);
    for (const auto& [token, place] : held_) {
      all.emplace(place.session->leases.front(), place.session);
    }
    for (const auto& [lease, session] : all) end(*session, {}, {});
  } catch (...) {  // NOLINT(bugprone-empty-catch): a destructor never throws, whatever gRPC does
    // Remaining keys expire with their leases.
  }
}

StoreResult<std::shared_ptr<Session>> LeaseQueueLock::open_session(const AcquireRequest& request) {
  auto session = std::make_shared<Session>();
  const TimePoint asked_at = env_.now();
  const auto own = add_lease(*session, request.ttl, request);
  if (!own) return tl::unexpected(own.error());
  if (const auto longer = outlasts_by()) {
    // The server may have granted the first lease a longer TTL than requested.
    const auto second = add_lease(*session, own->ttl + *longer, request);
    if (!second) return tl::unexpected(second.error());
  }
  session->ttl = own->ttl;
  session->state = std::make_shared<LeaseState>(asked_at + own->ttl, asked_at);
  session->renewal =
      keep_alive(context_, endpoint_, {session->leases.rbegin(), session->leases.rend()}, own->ttl,
                 asked_at, session->state);
  return session;
}

StoreResult<GrantedLease> LeaseQueueLock::add_lease(Session& session, Duration ttl,
                                                    const AcquireRequest& request) {
  auto granted = etcd_.grant_lease(ceil_seconds(ttl), request.key, request.stop);
  if (granted) {
    session.leases.push_back(granted->id);
  } else {
    end(session, request.key, request.stop);
    // The lock itself was not requested.
    granted.error().kind = StoreError::Kind::not_sent;
  }
  return granted;
}

StoreResult<std::shared_ptr<Session>> LeaseQueueLock::session_for(const AcquireRequest& request) {
  const std::int64_t seconds = ceil_seconds(request.ttl);
  if (const auto known = sessions_.find(seconds); known != sessions_.end()) {
    const std::shared_ptr<Session> session = known->second;
    if (usable(*session, request)) return session;
    retire(session);
    if (session->places == 0) end(*session, request.key, request.stop);
  }
  auto opened = open_session(request);
  if (opened) sessions_[seconds] = *opened;
  return opened;
}

bool LeaseQueueLock::usable(const Session& session, const AcquireRequest&) {
  return session.state->valid_at(env_.now());
}

void LeaseQueueLock::retire(const std::shared_ptr<Session>& session) {
  session->retired = true;
  forget(session);
}

void LeaseQueueLock::forget(const std::shared_ptr<Session>& session) {
  std::erase_if(sessions_, [&](const auto& known) { return known.second == session; });
}

void LeaseQueueLock::end(Session& session, std::string_view key, const std::stop_token& stop) {
  if (session.renewal) session.renewal->stop();
  // A lost session has no locks; the lease that outlives it expires by itself.
  if (session.state && session.state->lost_at()) return;
  for (const LeaseId lease : session.leases) {
    const auto revoked = etcd_.revoke_lease(lease, key, stop);
    // After a stop, do not wait twice for a store that does not answer: the lease expires.
    if (!revoked && stop.stop_requested()) return;
  }
}

void LeaseQueueLock::give_up(Place& place, const std::stop_token& stop) {
  const auto session = std::exchange(place.session, nullptr);
  if (--session->places == 0 && session->retired) end(*session, place.lock, stop);
}

void LeaseQueueLock::leave_later(Place& place, const std::stop_token& stop) {
  const Place pending = place;
  retire(pending.session);
  give_up(place, stop);
  if (pending.session->places > 0 && pending_.size() < kMaxPending) pending_.push_back(pending);
}

void LeaseQueueLock::leave_pending(const std::stop_token& stop) {
  while (!pending_.empty()) {
    const Place& place = pending_.back();
    const bool gone = place.session->places == 0 || place.session->state->lost_at();
    if (!gone && !leave(place, stop)) return;
    pending_.pop_back();
  }
}

/// One call of acquire(). Leaves nothing in the store unless the lock was granted.
class LeaseQueueLock::Acquisition {
 public:
  Acquisition(LeaseQueueLock& lock, const AcquireRequest& request)
      : lock_(lock), request_(request) {}

  Attempt try_once() {
    // Before each attempt, as this acquisition may be waiting behind one of those places.
    lock_.leave_pending(request_.stop);
    // Twice at most: the end of a session may show only when it is used.
    for (int attempt = 0;; ++attempt) {
      if (!place_.session) {
        if (auto session = begin(); !session) return tl::unexpected(session.error());
      }
      const bool entering = place_.revision == 0;
      Looked looked =
          entering ? lock_.enter(place_, request_.stop) : lock_.look(place_, request_.stop);
      if (!looked) {
        // The request was not sent, so it created nothing.
        if (entering && looked.error().kind != StoreError::Kind::unanswered) drop_place();
        return tl::unexpected(std::move(looked.error()));
      }
      const bool gone = !*looked || !(*looked)->there;
      if (!gone) return judge(**looked);
      if (!*looked) place_.session->state->mark_lost(lock_.env_.now());
      // Its lease may be gone with the place, though it still counts as valid here. Not retired: to
      // end what has ended would cut a lock-delay short.
      lock_.forget(place_.session);
      drop_place();
      if (attempt == 1) {
        return failure_at(lock_.etcd_.display(), StoreError::Kind::not_sent,
                          "sessions end as soon as they begin");
      }
    }
  }

  WaitResult wait(Duration left) {
    const std::stop_token stop = lock_.env_.waiting_stop(request_.stop);
    if (stop.stop_requested()) return WaitResult::stopped;
    if (!behind_) return WaitResult::signalled;
    // At most one TTL, to notice if the session and its place have ended meanwhile.
    const TimePoint until = lock_.env_.now() + std::min(left, place_.session->ttl);
    const auto watched = lock_.etcd_.await_deletion(request_.key, *behind_, until, stop);
    if (!watched) {
      lock_.env_.wait(nullptr, lock_.env_.now() + std::min(left, kAfterFailure), stop);
    }
    return stop.stop_requested() ? WaitResult::stopped : WaitResult::signalled;
  }

  /// Removes the place. If that fails, the outcome becomes unknown.
  void withdraw(AcquireResult& result) {
    if (!place_.session) return;
    // The place may be created only later, so there may be nothing to delete yet.
    if (result.outcome == AcquireOutcome::unknown) return lock_.leave_later(place_, request_.stop);
    const StoreResult<void> left = leave_place();
    if (left) return;
    result.outcome = AcquireOutcome::unknown;
    if (result.reason.empty()) result.reason = left.error().message;
  }

 private:
  StoreResult<void> begin() {
    auto session = lock_.session_for(request_);
    if (!session) return tl::unexpected(std::move(session.error()));
    ++(*session)->places;
    place_ = {.lock = std::string(request_.key),
              .token = random_token(lock_.env_),
              .mode = request_.mode,
              .revision = 0,
              .session = *std::move(session)};
    return {};
  }

  Attempt judge(const Standing& standing) {
    behind_ = standing.behind;
    if (!standing.granted) return std::nullopt;
    const auto& state = place_.session->state;
    if (!state->valid_at(lock_.env_.now())) {
      // Granted too late: the session may have ended.
      lock_.retire(place_.session);
      if (auto left = leave_place(); !left) return tl::unexpected(std::move(left.error()));
      return std::nullopt;
    }
    Lease lease{.key = place_.lock,
                .token = place_.token,
                .mode = place_.mode,
                .fencing = standing.fencing,
                .state = state};
    lock_.held_.emplace(lease.token, std::exchange(place_, {}));
    return std::optional(std::move(lease));
  }

  /// Afterwards the acquisition has no place, even if leaving failed.
  StoreResult<void> leave_place() {
    auto left = lock_.leave(place_, request_.stop);
    if (left) {
      drop_place();
      return {};
    }
    lock_.leave_later(place_, request_.stop);
    place_ = {};
    // Whether sent or not, the place may still exist.
    left.error().kind = StoreError::Kind::unanswered;
    return tl::unexpected(std::move(left.error()));
  }

  void drop_place() {
    lock_.give_up(place_, request_.stop);
    place_ = {};
  }

  LeaseQueueLock& lock_;
  const AcquireRequest& request_;
  Place place_;
  std::optional<std::string> behind_;
};

AcquireResult LeaseQueueLock::acquire(const AcquireRequest& request) {
  Acquisition acquisition(*this, request);
  AcquireResult result =
      retry_after([&](std::uint32_t, Duration left) { return acquisition.wait(left); }, request,
                  env_, [&](const AcquireRequest&) { return acquisition.try_once(); });
  acquisition.withdraw(result);
  return result;
}

ReleaseResult LeaseQueueLock::release(const Lease& lease) {
  const auto held = held_.find(lease.token);
  if (held == held_.end()) return {ReleaseOutcome::not_owner, {}};
  Place place = std::move(held->second);
  held_.erase(held);
  auto left = leave(place, {});
  // The lock must not stay held by a client that has released it.
  if (!left) {
    leave_later(place, {});
    return {ReleaseOutcome::failed, std::move(left.error().message)};
  }
  give_up(place, {});
  leave_pending({});
  return {*left ? ReleaseOutcome::released : ReleaseOutcome::not_owner, {}};
}

}  // namespace lockbench::etcd
