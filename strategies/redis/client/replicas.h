#pragma once

#include <string>

#include "strategies/descriptor.h"
#include "strategies/observer.h"
#include "strategies/redis/client/connection.h"

namespace lockbench::redis {

/// Which replicas a lock waits for with WAIT, and how long.
struct ReplicaWait {
  int replicas = 0;  ///< that are waited for
  int needed = 0;    ///< of them
  Duration within{};

  /// Queues WAIT, which covers what the same connection wrote before.
  void queue(Connection& redis) const;
  /// How many replicas have acknowledged. May take `patience` in addition to its own time.
  StoreResult<int> receive(Connection& redis, Duration patience, const std::stop_token& stop) const;
  /// Of kind `refused`.
  StoreError too_few(const std::string& endpoint, int acknowledged) const;
};

/// The replicas that one client's locks wait for.
class Replicas {
 public:
  /// `all_needed`: or one of them.
  Replicas(const Context& context, bool all_needed);

  /// Fails if their number is not given. Those that are connected at some moment may not be all,
  /// and a lock that only these have is lost if another one takes over.
  StoreResult<void> check(const std::string& endpoint) const;
  const ReplicaWait& wait() const { return wait_; }
  void queue(Connection& redis);
  StoreResult<int> receive(Connection& redis, const std::stop_token& stop);

 private:
  const ReplicaWait wait_;
  const Duration patience_;
  StrategyObserver& observer_;
  Env& env_;
  TimePoint asked_at_{};
};

}  // namespace lockbench::redis
