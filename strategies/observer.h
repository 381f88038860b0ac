#pragma once

#include <optional>
#include <string>

#include "strategies/duration.h"

namespace lockbench {

/// One node's answer to a request for the lock.
enum class Vote { granted, refused, failed };

enum class RenewalAnswer {
  renewed,
  not_owner,
  failed,  ///< no answer, or an error: it may have taken effect
};

/// The result of one renewal.
struct RenewalReport {
  RenewalAnswer outcome = RenewalAnswer::failed;
  int commands = 0;  ///< sent: one per node asked
  /// From the due time to the sending; of a repeated renewal, from the first due time.
  Duration slip{};
  Duration duration{};  ///< from sending to the answer
  Duration margin{};    ///< validity left at the answer; negative: it had ended
  std::string reason;   ///< for failures
};

/// Receives events of strategies and services that their results do not show; this base class
/// ignores them. A run has one, in its Services. Thread-safe; must neither call back nor wait.
class StrategyObserver {
 public:
  virtual ~StrategyObserver() = default;
  virtual void on_renewal(const RenewalReport& /*report*/) {}
  /// Of a quorum lock. `late`: the answer came after the round was decided.
  virtual void on_vote(int /*node*/, Vote /*vote*/, Duration /*taken*/, bool /*late*/) {}
  /// A round of a quorum lock is over. `split`: some nodes granted the lock, but no majority, while
  /// others were held by another client. `validity` of a grant.
  virtual void on_round(bool /*split*/, std::optional<Duration> /*validity*/) {}
  /// A lock has waited for replicas to acknowledge it; it was given back if fewer than `wanted`
  /// did.
  virtual void on_acknowledged(Duration /*taken*/, int /*acknowledged*/, int /*wanted*/) {}
  /// An empty request to a client program was answered, or not in time. Only if they are wanted.
  virtual bool wants_echoes() const { return false; }
  virtual void on_echo(Duration /*taken*/) {}
};

}  // namespace lockbench
