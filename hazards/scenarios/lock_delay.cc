#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// A holder and a waiter of a lock of their own.
struct Pair {
  Actor* holder = nullptr;
  Actor* waiter = nullptr;
  Grant held{};
  TimePoint valid_until{};  ///< the holder's, when it was killed
};

/// Kills holders at equal steps through the second renewal period of their sessions. The delay
/// counts from the session's end at the store, which is not before the end that its holder knew.
Verdict lock_delay(Play& play) {
  constexpr int kPhases = 4;
  const Duration promised = StrategyOptions().lock_delay;
  std::vector<Pair> pairs;
  for (int phase = 0; phase < kPhases; ++phase) {
    play.change_key();
    Pair& pair = pairs.emplace_back(Pair{&play.client(fmt::format("holder {}", phase + 1)),
                                         &play.client(fmt::format("waiter {}", phase + 1))});
    pair.held = pair.holder->must_acquire();
    pair.waiter->start_acquire(play.stuck_after() + promised);
    pair.waiter->await_waiting();
  }
  const Duration period = RenewalTiming().next(play.ttl());
  for (int phase = 0; phase < kPhases; ++phase) {
    Pair& pair = pairs[static_cast<std::size_t>(phase)];
    std::this_thread::sleep_until(pair.held.answered_at + period + phase * period / kPhases);
    pair.valid_until = pair.holder->belief(pair.held).until.value_or(pair.held.answered_at);
    pair.holder->kill();
  }
  Duration shortest = Duration::max();
  for (const Pair& pair : pairs) {
    const Grant next = pair.waiter->finish_acquire();
    require_answer(next);
    if (!next.granted()) return {HazardOutcome::stuck, "no client got the lock of a dead holder"};
    shortest = std::min(shortest, next.answered_at - pair.valid_until);
  }
  play.note("shortest_delay_seconds", shortest);
  const std::string what = fmt::format(
      "the next client got the lock {} after the session's end, "
      "where {} are promised",
      milliseconds(shortest), milliseconds(promised));
  if (shortest >= promised) return {HazardOutcome::safe, what};
  return {HazardOutcome::double_grant,
          what + ": a write that the dead holder has sent in time may still arrive"};
}

const ScenarioRegistration lock_delay_scenario({
    .name = "lock-delay",
    .question = "A holder dies at any time after its last renewal: is the lock-delay always whole?",
    .exempts = only_if([](const Descriptor& one) { return one.traits.lock_delay; },
                       "it promises no delay after a failure"),
    .play = lock_delay,
});

}  // namespace
}  // namespace lockbench::hazards
