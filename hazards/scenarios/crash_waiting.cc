#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// What a dead waiter leaves behind goes with its session, and with what servers and a busy machine
/// add to that. Where it has none, less than the lock itself lasts: it was not just the lock that
/// ran out.
Duration bound_of(const Play& play) {
  return play.traits().expiry == Expiry::session ? play.ttl() * 3 / 2 : play.ttl() * 2 / 3;
}

Verdict crash_waiting(Play& play) {
  play.ask_for_ttl(std::chrono::seconds(3));
  Actor& holder = play.client("holder");
  Actor& waiter = play.client("waiter");
  Actor& next = play.client("next");
  const Grant held = holder.hold();
  waiter.ask(play.patience());
  waiter.await_waiting();
  next.ask(play.patience());
  next.await_waiting();
  waiter.kill();
  const TimePoint released_at = std::chrono::steady_clock::now();
  need_release(holder.release(held));
  return verdict_of_return(play, next.answer(), released_at, bound_of(play));
}

const ScenarioRegistration registration({
    .name = "crash-waiting",
    .question = "A client dies while it waits, then the holder releases: does the queue go on?",
    .unless_declared = HazardOutcome::recovers,
    .play = crash_waiting,
});

}  // namespace
}  // namespace lockbench::hazards
