#include "strategies/redis/redlock_lock.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "strategies/redis/client/quorum_node.h"
#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {

Traits redlock_traits() {
  return {
      .release_check = OwnerCheck::atomic,
      .renew_check = OwnerCheck::atomic,
      .renewable = true,
      .nodes = 2,
      .waiting = WaitPolicy::random(std::chrono::milliseconds(50), std::chrono::milliseconds(250)),
      .waiting_choices = {WaitKind::random, WaitKind::poll, WaitKind::backoff}};
}

namespace {

// Of releases, which know no TTL.
constexpr Duration kNodeTimeout = std::chrono::milliseconds(50);

NodeRequestPtr make_request(NodeRequest::Kind kind, const Lease& lease, Duration ttl) {
  return std::make_shared<NodeRequest>(
      NodeRequest{.kind = kind, .key = lease.key, .token = lease.token, .ttl = ttl});
}

/// A lock on a majority of the given endpoints, which are independent Redis servers (redis.io,
/// "Distributed Locks with Redis"). Every round asks every node.
class RedlockLock : public LockStrategy {
 public:
  enum class Order {
    /// Waits for each node before it asks the next. Connects to a node only at its turn, within the
    /// time for its answer.
    sequential,
    parallel,  ///< asks all; ends once a majority has decided; reads late answers later
  };

  RedlockLock(const Context& context, Order order)
      : context_(context),
        env_(context.env),
        factory_(context.services.get_or_make<ConnectionFactory>(make_connection_factory)),
        observer_(context.services.get<StrategyObserver>()),
        order_(order),
        options_(context.options),
        endpoints_(endpoints_of(context, parse_independent)) {
    const Duration timeout = options_.command_timeout;
    // Connecting or sending must not hold up a round for longer than an answer may.
    const Duration blocking = std::min(options_.node_timeout.value_or(kNodeTimeout), timeout);
    for (const Endpoint& endpoint : endpoints_) {
      nodes_.emplace_back(static_cast<int>(nodes_.size()),
                          factory_.make(endpoint, {blocking, options_.after_stop}, env_), timeout,
                          observer_, env_);
    }
  }

  ~RedlockLock() override {
    for (QuorumNode& node : nodes_) node.send_pending_releases();
    // The last chance for releases that wait for a connection. By now all nodes are connecting.
    const TimePoint until = env_.now() + kNodeTimeout;
    for (QuorumNode& node : nodes_) {
      if (node.pending_releases() == 0) continue;
      node.ready(options_.command_timeout, std::max(until - env_.now(), Duration::zero()));
      node.send_pending_releases();
    }
  }

  /// Fails unless it reaches a majority.
  StoreResult<void> connect() override {
    int reached = 0;
    StoreResult<void> first_failure;
    for (QuorumNode& node : nodes_) {
      auto connected = node.connect({});
      reached += connected ? 1 : 0;
      if (!connected && first_failure) first_failure = std::move(connected);
    }
    return is_majority(reached) ? StoreResult<void>() : first_failure;
  }

  AcquireResult acquire(const AcquireRequest& request) override {
    Lease lease{.key = std::string(request.key)};
    return retry(request, env_, context_.waiting, [&](const AcquireRequest& once) -> Attempt {
      lease.token = random_token(env_);
      const StoreResult<bool> granted = try_round(once, lease);
      if (!granted) return tl::unexpected(granted.error());
      return *granted ? std::optional(std::move(lease)) : std::nullopt;
    });
  }

  ReleaseResult release(const Lease& lease) override {
    if (lease.renewal) lease.renewal->stop();
    const Votes votes = ask_nodes(make_request(NodeRequest::Kind::release, lease, longest_ttl_),
                                  {.per_node = options_.node_timeout.value_or(kNodeTimeout)});
    if (is_majority(votes.granted)) {
      for (QuorumNode& node : nodes_) {
        if (node.pending_releases() > 0) node.send_pending_releases();
      }
      return {ReleaseOutcome::released, {}};
    }
    if (is_blocking(votes.refused)) return {ReleaseOutcome::not_owner, {}};
    return {ReleaseOutcome::failed, describe(votes)};
  }

  RenewResult renew(const Lease& lease, Duration ttl) override {
    if (auto refused = refused_renewal(ttl)) return *std::move(refused);
    const TimePoint started = env_.now();
    longest_ttl_ = std::max(longest_ttl_, ttl);
    const Votes votes = ask_nodes(make_request(NodeRequest::Kind::renew, lease, ttl),
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

 private:
  struct Votes {
    int granted = 0, refused = 0;
    int no_effect = 0;   ///< failed for certain
    int unanswered = 0;  ///< may have taken effect
    std::string reason;  ///< of the first failure
    int failed() const { return no_effect + unanswered; }
    void fail(const QuorumNode& node, bool may_have_taken_effect) {
      ++(may_have_taken_effect ? unanswered : no_effect);
      if (reason.empty()) reason = node.failure();
    }
  };
  struct Limits {
    Duration per_node{};
    TimePoint until = TimePoint::max();  ///< for all nodes together; then no more are asked
    std::stop_token stop{};
  };

  StoreResult<bool> try_round(const AcquireRequest& request, Lease& lease) {
    const TimePoint started = env_.now();
    const Duration per_node = node_timeout(request.ttl);
    longest_ttl_ = std::max(longest_ttl_, request.ttl);
    Limits limits{.per_node = per_node, .stop = request.stop};
    // A round that begins before the deadline ends soon after it; a single attempt asks every node.
    if (request.deadline > started && request.deadline < TimePoint::max() - per_node) {
      limits.until = request.deadline + per_node;
    }
    const Votes votes =
        ask_nodes(make_request(NodeRequest::Kind::acquire, lease, request.ttl), limits);
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
    // A silent majority may hold the lock; the releases and the TTL free it.
    const bool perhaps = is_majority(votes.granted + votes.unanswered);
    return tl::unexpected(StoreError{
        perhaps ? StoreError::Kind::unanswered : StoreError::Kind::not_sent, describe(votes)});
  }

  /// Sends the request to every node that can be asked and counts the answers.
  Votes ask_nodes(const NodeRequestPtr& request, const Limits& limits) {
    Votes votes;
    if (order_ == Order::parallel) choose_nodes(limits.per_node);
    const std::size_t step = order_ == Order::parallel ? nodes_.size() : 1;
    for (std::size_t first = 0; first < nodes_.size(); first += step) {
      ask_range(first, first + step, request, limits, votes);
    }
    for (QuorumNode& node : nodes_) node.stop_waiting();
    return votes;
  }

  /// Chooses the nodes to ask in parallel. Without a majority of ready nodes it waits for the
  /// others.
  void choose_nodes(Duration per_node) {
    chosen_.assign(nodes_.size(), false);
    int ready = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      chosen_[node] = nodes_[node].ready(per_node);
      ready += chosen_[node] ? 1 : 0;
    }
    if (is_majority(ready)) return;
    // All are connecting by now, side by side.
    const TimePoint until = env_.now() + per_node;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (chosen_[node]) continue;
      chosen_[node] = nodes_[node].ready(per_node, std::max(until - env_.now(), Duration::zero()));
    }
  }

  /// Asks the nodes from `first` to `last - 1` in parallel, if there is time left.
  void ask_range(std::size_t first, std::size_t last, const NodeRequestPtr& request,
                 const Limits& limits, Votes& votes) {
    const TimePoint asked_at = env_.now();
    // Not counted as failures, as they were not asked.
    if (asked_at >= limits.until) return;
    const TimePoint give_up_at = std::min(asked_at + limits.per_node, limits.until);
    const bool stopped = limits.stop.stop_requested();
    const auto can_be_asked = [&](std::size_t node) {
      return order_ == Order::sequential
                 ? nodes_[node].ready(limits.per_node, give_up_at - asked_at, limits.stop)
                 : chosen_[node];
    };
    awaited_.clear();
    for (std::size_t node = first; node < last; ++node) {
      if (!stopped && can_be_asked(node)) {
        nodes_[node].ask(request);
        awaited_.push_back(node);
      } else {
        nodes_[node].skip(request);
        votes.fail(nodes_[node], false);
      }
    }
    bool over = false;
    while (!over && !awaited_.empty() && !decided(request->kind, votes)) {
      // An answer received when the time is up still counts: this client was late, not the node.
      const Duration left = std::max(give_up_at - env_.now(), Duration::zero());
      wait_for_answers(left, limits.stop);
      auto polled = polled_.begin();
      std::erase_if(awaited_, [&](std::size_t node) {
        return (polled++)->revents != 0 && count_answer(node, votes);
      });
      over = left == Duration::zero() || limits.stop.stop_requested();
    }
    if (decided(request->kind, votes)) return;  // answers still to come are read later
    for (const std::size_t node : awaited_) {
      nodes_[node].give_up(give_up_at - asked_at);
      votes.fail(nodes_[node], true);
    }
  }

  /// Waits until some awaited answer may be there, and marks in `polled_` where to look.
  void wait_for_answers(Duration longest, const std::stop_token& stop) {
    polled_.clear();
    bool some_there = false;
    for (const std::size_t node : awaited_) {
      const int descriptor = nodes_[node].descriptor();
      some_there = some_there || descriptor < 0;
      polled_.push_back({.fd = descriptor, .events = POLLIN, .revents = POLLIN});
    }
    if (!some_there) factory_.poll(polled_, longest, stop);
  }

  /// Whether the result is final, whatever the other answers are.
  bool decided(NodeRequest::Kind kind, const Votes& votes) const {
    // An acquisition fails by refusals and failures together; a lease is lost only by enough
    // refusals.
    const int against = kind == NodeRequest::Kind::acquire
                            ? votes.refused + votes.failed()
                            : std::max(votes.refused, votes.failed());
    return order_ == Order::parallel && (is_majority(votes.granted) || is_blocking(against));
  }

  /// False: its answer has not come yet.
  bool count_answer(std::size_t node, Votes& votes) {
    const auto answer = nodes_[node].answer();
    if (!answer) return false;
    if (*answer) {
      ++(**answer ? votes.granted : votes.refused);
    } else {
      votes.fail(nodes_[node], answer->error().kind == StoreError::Kind::unanswered);
    }
    return true;
  }

  /// Releases the lock on every node after a lost round, without waiting for the answers.
  void give_back(const Lease& lease, Duration per_node) {
    const NodeRequestPtr release = make_request(NodeRequest::Kind::release, lease, longest_ttl_);
    const TimePoint until = env_.now() + per_node;
    for (QuorumNode& node : nodes_) {
      // Waiting for a new connection pays only if the node may hold the lock.
      const bool may_hold = node.may_hold(lease.token);
      const Duration left = std::max(until - env_.now(), Duration::zero());
      if (node.ready(per_node, may_hold ? left : Duration::zero())) {
        node.ask(release);
        node.stop_waiting();
      } else {
        node.skip(release);
      }
    }
  }

  void keep_renewed(Lease& lease, TimePoint granted_at, Duration ttl) {
    if (!context_.renewing) return;
    if (ttl != channels_ttl_) make_renewal_channels(ttl);
    lease.renewal = scheduler_->keep({.key = lease.key,
                                      .token = lease.token,
                                      .state = lease.state,
                                      .granted_at = granted_at,
                                      .ttl = ttl,
                                      .drift = drift_of(ttl),
                                      .timing = *context_.renewing,
                                      .cap = options_.renew_cap,
                                      .channels = renewal_channels_,
                                      .quorum = majority_of(nodes())});
  }

  void make_renewal_channels(Duration ttl) {
    const RenewalProtocol protocol{.script = &scripts::renew_if_token};
    const Duration longest =
        std::min(options_.node_timeout.value_or(kNodeTimeout), options_.command_timeout);
    const Duration timeout = renewal_timeout(node_timeout(ttl), longest);
    scheduler_ = &renewal_scheduler(context_.services);
    renewal_channels_.clear();
    for (std::size_t node = 0; node < endpoints_.size(); ++node) {
      // The number distinguishes nodes with one URL, which would spoil a quorum of channels.
      renewal_channels_.push_back(fmt::format("{} {} {} of quorum node {}", context_.urls.at(node),
                                              protocol.name(), timeout.count(), node));
      scheduler_->provide_channel(renewal_channels_.back(), [&](Env& env) {
        return make_renewal_channel(factory_.make(endpoints_[node], timeout, env), protocol);
      });
    }
    channels_ttl_ = ttl;
  }

  int nodes() const { return static_cast<int>(nodes_.size()); }
  bool is_majority(int votes) const { return votes >= majority_of(nodes()); }
  /// Whether this many votes against it rule out a majority.
  bool is_blocking(int votes) const { return votes > nodes() - majority_of(nodes()); }

  std::string describe(const Votes& votes) const {
    if (votes.failed() == 0) return fmt::format("no majority of {} nodes", nodes());
    return nodes() == 1
               ? votes.reason
               : fmt::format("{} of {} nodes failed: {}", votes.failed(), nodes(), votes.reason);
  }

  Duration node_timeout(Duration ttl) const {
    return std::min(options_.node_timeout.value_or(node_timeout_of(ttl)), options_.command_timeout);
  }

  const Context context_;
  Env& env_;
  ConnectionFactory& factory_;
  StrategyObserver& observer_;
  const Order order_;
  const StrategyOptions& options_;
  const std::vector<Endpoint> endpoints_;
  std::vector<QuorumNode> nodes_;
  std::vector<std::string> renewal_channels_;  ///< made when first needed
  Duration channels_ttl_{};                    ///< for which they were made; zero: none
  RenewalScheduler* scheduler_ = nullptr;      ///< found with the channels
  Duration longest_ttl_{};                     ///< of all requests
  // For the current round; members, so that a round allocates nothing.
  std::vector<bool> chosen_;
  std::vector<std::size_t> awaited_;
  std::vector<pollfd> polled_;
};

template <RedlockLock::Order kOrder>
std::unique_ptr<LockStrategy> make(const Context& context) {
  return std::make_unique<RedlockLock>(context, kOrder);
}

/// Redlock as described: one node after the other.
const Registration redlock(on_redis({
    .name = "redlock",
    .summary = "SET NX PX on a majority of independent nodes, asked one after the other",
    .acquire_commands = {"SET key token NX PX ttl", "EVALSHA release_if_token key token"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "redis.io \"Distributed Locks with Redis\"",
    .libraries = {{"Java", "Redisson getMultiLock over independent servers (needs all of them)",
                   "lease time = {ttl}", Reentry::counted, true},
                  {"Python", "redlock-py", "lock(resource, {ttl}), retry_count, retry_delay"}},
    .traits = redlock_traits(),
    .make = make<RedlockLock::Order::sequential>,
}));

/// Redlock at the speed of its majority: asks all nodes in parallel and does not wait for late
/// answers.
const Registration redlock_parallel(on_redis({
    .name = "redlock-parallel",
    .summary = "SET NX PX on all independent nodes in parallel, granted by the majority",
    .acquire_commands = {"SET key token NX PX ttl", "EVALSHA release_if_token key token"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "redis.io \"Distributed Locks with Redis\", \"send the SET commands to the N "
              "instances at the same time\"",
    .typical = true,
    .libraries =
        {{"Go", "redsync", "WithExpiry({ttl}), WithTries, WithRetryDelay, WithTimeoutFactor"},
         {"Python", "pottery Redlock", "auto_release_time = {ttl}, masters"},
         {"JavaScript", "redlock", "duration = {ttl}, driftFactor, retryDelay, retryCount"}},
    .traits = redlock_traits(),
    .make = make<RedlockLock::Order::parallel>,
}));

}  // namespace
}  // namespace lockbench::redis
