#include "strategies/redis/redlock_lock.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/endpoints.h"
#include "strategies/redis/client/quorum.h"
#include "strategies/redis/client/renewal_channel.h"
#include "strategies/redis/scripts.h"
#include "strategies/waiting/retry.h"

namespace lockbench::redis {
namespace {

// Where no TTL says how long it may take.
constexpr Duration kNodeTimeout = std::chrono::milliseconds(50);

QuestionPtr make_question(Question::Kind kind, const Lease& lease, Duration ttl = {}) {
  return std::make_shared<Question>(
      Question{.kind = kind, .key = lease.key, .token = lease.token, .ttl = ttl});
}

}  // namespace

RedlockLock::RedlockLock(const Context& context, Asking asking)
    : env_(context.env),
      services_(context.services),
      factory_(context.services.get_or_make<ConnectionFactory>(make_hiredis_factory)),
      observer_(context.services.get_or_make<QuorumObserver>(make_deaf_quorum_observer)),
      asking_(asking),
      options_(context.options),
      waiting_(context.waiting),
      renewing_(context.renewing),
      endpoints_(endpoints_of(context, parse_endpoint)) {
  const Duration timeout = options_.command_timeout;
  // Neither connecting nor sending may hold up a round for longer than an answer may.
  const Duration at_once = std::min(options_.node_timeout.value_or(kNodeTimeout), timeout);
  for (const Endpoint& endpoint : endpoints_) {
    nodes_.emplace_back(static_cast<int>(nodes_.size()), endpoint.display(),
                        factory_.make(endpoint, at_once, env_), timeout, observer_, env_);
  }
}

RedlockLock::~RedlockLock() {
  for (QuorumNode& node : nodes_) {
    node.tidy_up();
    if (node.owed() > 0) node.revive({});
  }
  // The last chance for what waits for a connection. By now all are on their way, side by side.
  const TimePoint until = env_.now() + kNodeTimeout;
  for (QuorumNode& node : nodes_) {
    if (node.owed() == 0) continue;
    node.revive(std::max(until - env_.now(), Duration::zero()));
    node.tidy_up();
  }
}

StoreResult<void> RedlockLock::connect() {
  int reached = 0;
  StoreResult<void> first_failure;
  for (QuorumNode& node : nodes_) {
    auto connected = node.connect({});
    reached += connected ? 1 : 0;
    if (!connected && first_failure) first_failure = std::move(connected);
  }
  return is_majority(reached) ? StoreResult<void>() : first_failure;
}

AcquireResult RedlockLock::acquire(const AcquireRequest& request) {
  Lease lease{.key = std::string(request.key)};
  return retry(request, env_, waiting_, [&](const AcquireRequest& once) -> Attempt {
    lease.token = random_token(env_);
    const StoreResult<bool> granted = try_round(once, lease);
    if (!granted) return tl::unexpected(granted.error());
    return *granted ? std::optional(std::move(lease)) : std::nullopt;
  });
}

StoreResult<bool> RedlockLock::try_round(const AcquireRequest& request, Lease& lease) {
  const TimePoint started = env_.now();
  const Duration per_node = node_timeout(request.ttl);
  Patience patience{.per_node = per_node, .stop = request.stop};
  // A round that was begun in time ends soon after it; one that is the only one is gone through.
  if (request.deadline > started && request.deadline < TimePoint::max() - per_node) {
    patience.until = request.deadline + per_node;
  }
  const Votes votes = ask_nodes(make_question(Question::Kind::take, lease, request.ttl), patience);
  const Duration validity = validity_of(request.ttl, env_.now() - started);
  const bool won = is_majority(votes.granted);
  const bool granted = won && validity > Duration::zero();
  observer_.on_round(!won && votes.granted > 0 && votes.refused > 0,
                     granted ? std::optional(validity) : std::nullopt);
  if (granted) {
    const TimePoint end = started + request.ttl - drift_of(request.ttl);
    lease.state = std::make_shared<LeaseState>(end, started);
    keep_renewed(lease, started, request.ttl);
    return true;
  }
  give_back(lease, per_node);
  if (!is_blocking(votes.failed())) return false;
  // A majority that could not tell us may hold it: it is being freed there, and ends by itself.
  const bool perhaps = is_majority(votes.granted + votes.unanswered);
  return tl::unexpected(StoreError{
      perhaps ? StoreError::Kind::unanswered : StoreError::Kind::not_sent, describe(votes)});
}

void RedlockLock::give_back(const Lease& lease, Duration per_node) {
  const QuestionPtr release = make_question(Question::Kind::free, lease);
  const TimePoint until = env_.now() + per_node;
  for (QuorumNode& node : nodes_) {
    // Where it may be held, a connection that was lost is worth a wait for another.
    const bool worth_it = node.may_hold(lease.token);
    const Duration left = std::max(until - env_.now(), Duration::zero());
    if (node.ready(per_node, worth_it ? left : Duration::zero())) {
      node.ask(release);
      node.stop_waiting();
    } else {
      node.pass_over(release);
    }
  }
}

ReleaseResult RedlockLock::release(const Lease& lease) {
  if (lease.renewal) lease.renewal->stop();
  const Votes votes = ask_nodes(make_question(Question::Kind::free, lease),
                                {.per_node = options_.node_timeout.value_or(kNodeTimeout)});
  if (is_majority(votes.granted)) {
    for (QuorumNode& node : nodes_) {
      if (node.owed() > 0) node.tidy_up();
    }
    return {ReleaseOutcome::released, {}};
  }
  if (is_blocking(votes.refused)) return {ReleaseOutcome::not_owner, {}};
  return {ReleaseOutcome::failed, describe(votes)};
}

RenewResult RedlockLock::renew(const Lease& lease, Duration ttl) {
  const TimePoint started = env_.now();
  const Votes votes = ask_nodes(make_question(Question::Kind::prolong, lease, ttl),
                                {.per_node = node_timeout(ttl)});
  const Duration validity = validity_of(ttl, env_.now() - started);
  if (is_majority(votes.granted) && validity > Duration::zero()) {
    lease.state->extend(started + ttl - drift_of(ttl), started);
    return {RenewOutcome::renewed, {}};
  }
  if (is_blocking(votes.refused)) {
    lease.state->mark_lost(env_.now());
    return {RenewOutcome::not_owner, {}};
  }
  return {RenewOutcome::failed, describe(votes)};
}

void RedlockLock::keep_renewed(Lease& lease, TimePoint granted_at, Duration ttl) {
  if (!renewing_) return;
  if (scheduler_ == nullptr) find_scheduler(ttl);
  lease.renewal = scheduler_->keep({.key = lease.key,
                                    .token = lease.token,
                                    .state = lease.state,
                                    .granted_at = granted_at,
                                    .ttl = ttl,
                                    .drift = drift_of(ttl),
                                    .timing = *renewing_,
                                    .cap = options_.renew_cap,
                                    .channels = renewal_channels_,
                                    .quorum = majority_of(nodes())});
}

void RedlockLock::find_scheduler(Duration ttl) {
  scheduler_ = &services_.get_or_make<RenewalScheduler>([this] {
    auto& worlds = services_.get_or_make<EnvSource>(system_env_source);
    auto& observer = services_.get_or_make<RenewalObserver>(make_deaf_observer);
    return std::make_shared<RenewalScheduler>(worlds.make(), observer);
  });
  const RenewalProtocol protocol{.script = &scripts::renew_if_token};
  const Duration timeout = std::max(node_timeout(ttl), Duration(std::chrono::milliseconds(10)));
  for (const Endpoint& endpoint : endpoints_) {
    // A quorum's nodes are waited for as a quorum waits: not on the channels of other locks. Each
    // has its own, even if all that sets it apart is what nobody is shown.
    const std::string name = fmt::format("{} {} of a quorum's node {}", endpoint.display(),
                                         protocol.name(), renewal_channels_.size());
    scheduler_->provide_channel(name, [&](Env& env) {
      return make_renewal_channel(factory_.make(endpoint, timeout, env), protocol);
    });
    renewal_channels_.push_back(name);
  }
}

std::string RedlockLock::describe(const Votes& votes) const {
  if (votes.failed() == 0) return fmt::format("no majority of {} nodes", nodes());
  return nodes() == 1
             ? votes.reason
             : fmt::format("{} of {} nodes failed: {}", votes.failed(), nodes(), votes.reason);
}

Duration RedlockLock::node_timeout(Duration ttl) const {
  return std::min(options_.node_timeout.value_or(node_timeout_of(ttl)), options_.command_timeout);
}

Traits redlock_traits() {
  return {
      .expiry = Expiry::ttl,
      .release_check = OwnerCheck::atomic,
      .renew_check = OwnerCheck::atomic,
      .renewable = true,
      .nodes = 2,
      .waiting = WaitPolicy::random(std::chrono::milliseconds(50), std::chrono::milliseconds(250)),
      .waiting_choices = {WaitKind::random, WaitKind::poll, WaitKind::backoff}};
}

std::vector<KnownHazard> redlock_hazards() {
  return {{"redlock-node-restart-empty", HazardOutcome::double_grant},
          {"redlock-clock-jump", HazardOutcome::double_grant},
          {"overrun-holding", HazardOutcome::double_grant},
          {"pause-holding", HazardOutcome::lost_update},
          {"pause-holding-fenced", HazardOutcome::lost_update},
          {"partition-holder", HazardOutcome::double_grant},
          {"reentry", HazardOutcome::self_deadlock},
          {"redlock-majority-down", HazardOutcome::unavailable},
          {"redlock-slow-nodes", HazardOutcome::refused}};
}

}  // namespace lockbench::redis
