#include "strategies/zookeeper/lock.h"

#include <array>
#include <utility>

#include "strategies/waiting/retry.h"

namespace lockbench::zookeeper {
namespace {

/// The TTL of a session begun before the first acquisition.
constexpr Duration kFirstTtl = std::chrono::seconds(10);

}  // namespace

NodeLock::NodeLock(const Context& context) : env_(context.env) {
  auto& dialer = context.services.get<Dialer>();
  auto& keeper = context.services.get_or_make<SessionKeeper>(
      [&] { return std::make_shared<SessionKeeper>(make_service_env(context.services), dialer); });
  const Endpoint endpoint = endpoints_of(context, parse_endpoint).front();
  session_ = std::make_unique<Session>(endpoint, context.options.timeouts(), context.env, &keeper,
                                       connect_by(dialer, endpoint.tls));
}

StoreResult<void> NodeLock::connect() { return session_->connect(kFirstTtl); }

AcquireResult NodeLock::acquire(const AcquireRequest& request) {
  Claim claim{.key = std::string(request.key), .lock = node_of_key(request.key), .node = {}};
  begin(claim);
  const auto attempt = [&](const AcquireRequest& once) -> Attempt {
    const StoreResult<bool> granted = try_once(once, claim);
    if (!granted) return tl::unexpected(granted.error());
    if (!*granted) return std::nullopt;
    auto state = session_->bind(claim.node);
    if (!state) return std::nullopt;  // its validity is over already
    return std::optional(Lease{.key = claim.key,
                               .token = claim.node,
                               .fencing = claim.fencing,
                               .state = std::move(state)});
  };
  const auto wait = [&](std::uint32_t, Duration left) {
    const TimePoint now = env_.now();
    const TimePoint deadline = left > TimePoint::max() - now ? TimePoint::max() : now + left;
    return wait_turn(claim, deadline, request.stop);
  };
  AcquireResult result = retry_after(wait, request, env_, attempt);
  if (!result.lease) withdraw(result, claim, request.stop);
  // A new session is faster than a reconnection, which pauses between its attempts.
  if (!session_->connected() && !session_->has_leases()) session_->close();
  return result;
}

StoreResult<bool> NodeLock::try_once(const AcquireRequest& request, Claim& claim) {
  // If the session turns out to have ended, everything in it is gone: one more attempt, in a new
  // session.
  for (bool again = true;; again = false) {
    if (auto ready = session_->connect(request.ttl, request.stop); !ready) {
      return tl::unexpected(ready.error());
    }
    if (claimed_in_ != session_->number()) {
      claimed_in_ = session_->number();
      claim.node.clear();
      abandoned_.clear();
    }
    remove_abandoned(request.stop);
    auto granted = ask(claim, request.stop);
    if (granted || !again || !session_->is_over(claimed_in_)) return granted;
  }
}

void NodeLock::withdraw(AcquireResult& result, const Claim& claim, const std::stop_token& stop) {
  if (claim.node.empty() || session_->is_over(claimed_in_)) return;
  const StoreResult<void> gone = give_up(claim, stop);
  if (gone) return;
  result.outcome = AcquireOutcome::unknown;
  if (result.reason.empty()) result.reason = gone.error().message;
  abandon(claim);
}

void NodeLock::abandon(Claim claim) {
  if (session_->has_leases()) {
    abandoned_.push_back(std::move(claim));
  } else {
    session_->close();
  }
}

void NodeLock::remove_abandoned(const std::stop_token& stop) {
  while (!abandoned_.empty() && give_up(abandoned_.back(), stop)) abandoned_.pop_back();
}

ReleaseResult NodeLock::release(const Lease& lease) {
  ReleaseResult result = give_back(lease);
  if (abandoned_.empty()) return result;
  if (!session_->has_leases()) {
    session_->close();
    abandoned_.clear();
  } else if (result.outcome != ReleaseOutcome::failed) {
    remove_abandoned({});
  }
  return result;
}

ReleaseResult NodeLock::give_back(const Lease& lease) {
  // After a loss or an earlier release, the node may belong to another client.
  const bool ours = session_->unbind(lease.state) && !lease.state->lost_at();
  if (!ours) return {ReleaseOutcome::not_owner, {}};
  const auto removed = call(Request::Kind::remove, lease.token, lease.key, {});
  if (removed && removed->done()) return {ReleaseOutcome::released, {}};
  if (removed || session_->is_over(claimed_in_)) {
    lease.state->mark_lost(env_.now());
    return {ReleaseOutcome::not_owner, {}};
  }
  const Claim claim{.key = lease.key, .lock = node_of_key(lease.key), .node = lease.token};
  // The node may still exist; it must not stay. Without a connection there is no second attempt, as
  // call() has already waited for one.
  const bool hopeless =
      removed.error().kind == StoreError::Kind::not_sent && !session_->connected();
  if (hopeless || !give_up(claim, {})) abandon(claim);
  // The release must not be repeated: then the node may belong to another client.
  lease.state->mark_lost(env_.now());
  return {ReleaseOutcome::failed, removed.error().message};
}

StoreResult<Reply> NodeLock::call(Request::Kind kind, std::string path, std::string_view key,
                                  const std::stop_token& stop) {
  const Request request{kind, std::move(path)};
  return session_->call({&request, 1}, key, stop).map([](std::vector<Reply> replies) {
    return std::move(replies.front());
  });
}

StoreResult<Reply> NodeLock::call_in_sync(Request::Kind kind, const std::string& path,
                                          std::string_view key, const std::stop_token& stop) {
  const std::array<Request, 2> requests{Request{Request::Kind::sync, path}, {kind, path}};
  return session_->call(requests, key, stop).map([](std::vector<Reply> replies) {
    return std::move(replies.back());
  });
}

StoreResult<std::vector<Reply>> NodeLock::make_node(std::span<const Request> requests, Claim& claim,
                                                    const std::stop_token& stop) {
  claim.node = requests.front().path;
  auto replies = session_->call(requests, claim.key, stop);
  if (replies && replies->front().code == Code::no_node) {
    replies = make_path(parent_of(claim.node), claim.key, stop).and_then([&] {
      return session_->call(requests, claim.key, stop);
    });
  }
  if (!replies && replies.error().kind != StoreError::Kind::unanswered) claim.node.clear();
  return replies;
}

StoreResult<void> NodeLock::make_path(std::string_view path, std::string_view key,
                                      const std::stop_token& stop) {
  std::vector<Request> requests;
  for (std::size_t end = path.find('/', 1); end != std::string_view::npos;
       end = path.find('/', end + 1)) {
    requests.push_back({Request::Kind::make, std::string(path.substr(0, end))});
  }
  requests.push_back({Request::Kind::make, std::string(path)});
  return before_request(session_->call(requests, key, stop).map([](const auto&) {}));
}

}  // namespace lockbench::zookeeper
