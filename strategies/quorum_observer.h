#pragma once

#include <memory>
#include <optional>

#include "strategies/env.h"

namespace lockbench {

/// What one node of a quorum said when it was asked for the lock.
enum class Vote { granted, refused, failed };

/// Is told of every vote and every round. Thread-safe; must not call back.
class QuorumObserver {
 public:
  virtual ~QuorumObserver() = default;
  /// `late`: it came when the round had been decided.
  virtual void on_vote(int node, Vote vote, Duration taken, bool late) = 0;
  /// A round is over. `split`: some nodes granted it, but too few, while others were held by
  /// somebody else. `validity` of a grant.
  virtual void on_round(bool split, std::optional<Duration> validity) = 0;
};

/// For those who do not care.
std::shared_ptr<QuorumObserver> make_deaf_quorum_observer();

}  // namespace lockbench
