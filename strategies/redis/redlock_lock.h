#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/redis/client/quorum_node.h"
#include "strategies/renewal.h"

namespace lockbench::redis {

// The arithmetic of redis.io, "Distributed Locks with Redis".

constexpr int majority_of(int nodes) { return nodes / 2 + 1; }

/// How far the nodes' clocks may drift apart during a TTL.
constexpr Duration drift_of(Duration ttl) { return ttl / 100 + std::chrono::milliseconds(2); }

/// What is left of the validity once the votes are in. Without a positive rest the lock must not be
/// granted.
constexpr Duration validity_of(Duration ttl, Duration elapsed) {
  return ttl - elapsed - drift_of(ttl);
}

/// How long to wait for one node: a small part of the TTL, so that a node that is down costs little
/// validity.
constexpr Duration node_timeout_of(Duration ttl) {
  constexpr Duration kLongest = std::chrono::milliseconds(50);
  return ttl / 20 < kLongest ? ttl / 20 : kLongest;
}

/// A lock on a majority of independent Redis servers, all endpoints that are given (redis.io,
/// "Distributed Locks with Redis"). Every round asks every node.
class RedlockLock : public LockStrategy {
 public:
  enum class Order {
    /// Waits for each node before it asks the next. Each is connected only when it is its turn, in
    /// the time that it has to answer.
    sequential,
    parallel,  ///< asks all; done once a majority has decided, and reads later answers later
  };

  RedlockLock(const Context& context, Order order);
  ~RedlockLock() override;

  /// Fails unless it reaches a majority.
  StoreResult<void> connect() override;
  AcquireResult acquire(const AcquireRequest& request) override;
  ReleaseResult release(const Lease& lease) override;
  RenewResult renew(const Lease& lease, Duration ttl) override;

 private:
  struct Votes {
    int granted = 0, refused = 0;
    int no_effect = 0;   ///< failed for sure
    int unanswered = 0;  ///< may have taken effect
    std::string reason;  ///< of the first failure
    int failed() const { return no_effect + unanswered; }
  };
  struct Limits {
    Duration per_node{};
    TimePoint until = TimePoint::max();  ///< for all nodes together; then no more are asked
    std::stop_token stop{};
  };

  StoreResult<bool> try_round(const AcquireRequest& request, Lease& lease);
  /// Sends the request to every node that can be asked and counts the answers.
  Votes ask_nodes(const NodeRequestPtr& request, const Limits& limits);
  /// Sets which nodes to ask at once. Without a majority of ready nodes it waits for the others.
  void choose_nodes(Duration per_node);
  /// Asks the nodes from `first` to `last - 1` at once, if there is time left.
  void ask_range(std::size_t first, std::size_t last, const NodeRequestPtr& request,
                 const Limits& limits, Votes& votes);
  /// Waits until one of the awaited answers may be there, and marks in `polled_` where to look.
  void wait_for_answers(Duration longest, const std::stop_token& stop);
  /// Whether later answers cannot change the result any more.
  bool decided(NodeRequest::Kind kind, const Votes& votes) const;
  /// False: its answer has not come yet.
  bool count_answer(std::size_t node, Votes& votes);
  /// Releases the lock on every node after a lost round, without waiting for the answers.
  void give_back(const Lease& lease, Duration per_node);
  void keep_renewed(Lease& lease, TimePoint granted_at, Duration ttl);
  void make_renewal_channels(Duration ttl);

  int nodes() const { return static_cast<int>(nodes_.size()); }
  bool is_majority(int votes) const { return votes >= majority_of(nodes()); }
  /// Whether so many votes against it rule out a majority for it.
  bool is_blocking(int votes) const { return votes > nodes() - majority_of(nodes()); }
  std::string describe(const Votes& votes) const;
  Duration node_timeout(Duration ttl) const;

  Env& env_;
  Services& services_;
  ConnectionFactory& factory_;
  StrategyObserver& observer_;
  const Order order_;
  const StrategyOptions options_;
  const WaitPolicy waiting_;
  const std::optional<RenewalTiming> renewing_;
  const std::vector<Endpoint> endpoints_;
  std::vector<QuorumNode> nodes_;
  std::vector<std::string> renewal_channels_;  ///< made when first needed
  RenewalScheduler* scheduler_ = nullptr;      ///< found with the channels
  // Of the current round; members, so that a round allocates nothing.
  std::vector<bool> chosen_;
  std::vector<std::size_t> awaited_;
  std::vector<pollfd> polled_;
};

/// Of both orders.
Traits redlock_traits();

}  // namespace lockbench::redis
