#pragma once

#include <optional>

#include "strategies/duration.h"

namespace lockbench {

/// One node's answer to a request for the lock.
enum class Vote { granted, refused, failed };

/// Sees every vote and every round of quorum locks; this base class ignores them. Thread-safe; must
/// not call back.
class QuorumObserver {
 public:
  virtual ~QuorumObserver() = default;
  /// `late`: the answer came after the round was decided.
  virtual void on_vote(int /*node*/, Vote /*vote*/, Duration /*taken*/, bool /*late*/) {}
  /// A round is over. `split`: some nodes granted the lock, but no majority, while others were held
  /// by another client. `validity` of a grant.
  virtual void on_round(bool /*split*/, std::optional<Duration> /*validity*/) {}
};

}  // namespace lockbench
