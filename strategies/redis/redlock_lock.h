#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/redis/client/quorum_node.h"
#include "strategies/renewal.h"

namespace lockbench::redis {

/// A lock on a majority of independent Redis servers (redis.io, "Distributed Locks with Redis";
/// articles 001 and 003), all endpoints that are given. Nodes that are down or silent are left
/// alone as long as there is a majority without them.
class RedlockLock : public LockStrategy {
 public:
  enum class Asking {
    one_by_one,   ///< each is waited for before the next is asked
    all_at_once,  ///< and done as soon as the majority is decided; later answers are read later
  };

  RedlockLock(const Context& context, Asking asking);
  ~RedlockLock() override;

  /// A majority must be there.
  StoreResult<void> connect() override;
  AcquireResult acquire(const AcquireRequest& request) override;
  /// By the nodes' majority.
  ReleaseResult release(const Lease& lease) override;
  RenewResult renew(const Lease& lease, Duration ttl) override;

 private:
  struct Votes {
    int granted = 0, refused = 0;
    int no_effect = 0;   ///< failed, and certainly so
    int unanswered = 0;  ///< failed, or not
    std::string reason;  ///< of the first failure
    int failed() const { return no_effect + unanswered; }
  };
  struct Patience {
    Duration per_node{};
    TimePoint until = TimePoint::max();  ///< for all nodes together
    std::stop_token stop{};
  };

  StoreResult<bool> try_round(const AcquireRequest& request, Lease& lease);
  Votes ask_nodes(const QuestionPtr& question, const Patience& patience);
  void choose_nodes(Duration per_node);
  void ask_one_by_one(const QuestionPtr& question, const Patience& patience, Votes& votes);
  void ask_all_at_once(const QuestionPtr& question, const Patience& patience, Votes& votes);
  void pass_over(std::size_t node, const QuestionPtr& question, Votes& votes);
  /// True if its answer has come.
  bool hear(std::size_t node, Votes& votes);
  void miss(std::size_t node, Duration waited, Votes& votes);
  void give_back(const Lease& lease, Duration per_node);
  void keep_renewed(Lease& lease, TimePoint granted_at, Duration ttl);
  void find_scheduler(Duration ttl);

  int nodes() const { return static_cast<int>(nodes_.size()); }
  bool is_majority(int votes) const;
  /// Whether so many votes against it make a majority for it impossible.
  bool is_blocking(int votes) const;
  std::string describe(const Votes& votes) const;
  Duration node_timeout(Duration ttl) const;

  Env& env_;
  Services& services_;
  ConnectionFactory& factory_;
  QuorumObserver& observer_;
  const Asking asking_;
  const StrategyOptions options_;
  const WaitPolicy waiting_;
  const std::optional<RenewalTiming> renewing_;
  const std::vector<Endpoint> endpoints_;
  std::vector<QuorumNode> nodes_;
  RenewalScheduler* scheduler_ = nullptr;  ///< and its channels: found when first needed
  std::vector<std::string> renewal_channels_;
  // Of the round that is under way; kept, as a round should cost no allocation.
  std::vector<bool> chosen_;
  std::vector<std::size_t> awaited_;
  std::vector<Watched> watched_;
};

// For the descriptors of both ways of asking.
Traits redlock_traits();
std::vector<KnownHazard> redlock_hazards();

}  // namespace lockbench::redis
