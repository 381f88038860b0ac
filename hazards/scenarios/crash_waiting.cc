#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// A dead waiter's queue entry ends with its session; servers and a busy machine add to that.
/// Without a session the bound is below the TTL, so that the expiry of the lock is not the cause.
Duration bound_of(const Play& play) {
  return play.traits().expiry == Expiry::session ? play.ttl() * 3 / 2 : play.ttl() * 2 / 3;
}

Verdict crash_waiting(Play& play) {
  play.set_ttl(std::chrono::seconds(3));
  Actor& holder = play.client("holder");
  Actor& waiter = play.client("waiter");
  Actor& next = play.client("next");
  const Grant held = holder.must_acquire();
  waiter.start_acquire(play.stuck_after());
  waiter.await_waiting();
  next.start_acquire(play.stuck_after());
  next.await_waiting();
  waiter.kill();
  const TimePoint released_at = BootClock::now();
  require_release(holder.release(held));
  return verdict_of_return(play, next.finish_acquire(), released_at, bound_of(play));
}

const ScenarioRegistration crash_waiting_scenario({
    .name = "crash-waiting",
    .question = "A client dies while it waits, then the holder releases: is the next one served?",
    .default_outcome = HazardOutcome::recovers,
    .play = crash_waiting,
});

}  // namespace
}  // namespace lockbench::hazards
