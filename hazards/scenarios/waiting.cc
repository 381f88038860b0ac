#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

constexpr std::chrono::seconds kQueueTtl{3};
/// For a request to reach its server.
constexpr std::chrono::milliseconds kOnItsWay{100};

/// A dead waiter's queue entry ends with its session; servers and a busy machine add some time.
/// Without a session, the bound is below the TTL, so that the lock's expiry cannot explain the
/// grant.
Duration bound_of(const Play& play) {
  return play.traits().expiry == Expiry::session ? play.ttl() * 3 / 2 : play.ttl() * 2 / 3;
}

/// A grant, and the release before it.
struct Turn {
  Grant grant;
  TimePoint released_at{};
};

/// Clients die while they wait, then the holder releases. Returns the turn of the next in line.
Turn turn_behind_the_dead(Play& play, int dead) {
  play.set_ttl(kQueueTtl);
  play.change_key();
  Actor& holder = play.client("holder");
  std::vector<Actor*> waiters;
  waiters.reserve(static_cast<std::size_t>(dead) + 1);
  for (int i = 0; i < dead; ++i) {
    waiters.push_back(&play.client(dead == 1 ? "waiter" : fmt::format("waiter {}", i + 1)));
  }
  Actor& next = play.client("next");
  const Grant held = holder.must_acquire();
  waiters.push_back(&next);
  for (Actor* waiter : waiters) {
    waiter->start_acquire(play.stuck_after());
    waiter->await_waiting();
  }
  waiters.pop_back();
  for (Actor* waiter : waiters) waiter->kill();
  const TimePoint released_at = PlayClock::now();
  require_release(holder.release(held));
  return {next.finish_acquire(), released_at};
}

Verdict crash_waiting(Play& play) {
  const Turn turn = turn_behind_the_dead(play, 1);
  return verdict_of_return(play, turn.grant, turn.released_at, bound_of(play));
}

/// As a slope: what each further dead waiter costs the next one in line.
Verdict dead_waiters(Play& play) {
  constexpr int kFew = 1, kMany = 4;
  Duration few{};
  Verdict verdict;
  for (const int dead : {kFew, kMany}) {
    const Turn turn = turn_behind_the_dead(play, dead);
    verdict = verdict_of_return(play, turn.grant, turn.released_at, bound_of(play));
    verdict.reason += fmt::format(" (behind {} dead)", dead);
    if (verdict.outcome == HazardOutcome::stuck) return verdict;
    const Duration took = turn.grant.answered_at - turn.released_at;
    if (dead == kFew) few = took;
    if (dead == kMany) play.note("seconds_per_dead_waiter", (took - few) / (kMany - kFew));
  }
  return verdict;
}

/// A waiter stands still for longer than the TTL, and the holder releases meanwhile. The next one
/// in line must get the lock, and the waiter must not, although its turn came while it stood still.
Verdict pause_waiting(Play& play) {
  const Traits& traits = play.traits();
  const bool keeps_places =
      (traits.fair || traits.expiry == Expiry::session || play.of_program()) &&
      !traits.ends_with_connection;
  const Duration ttl =
      keeps_places ? kQueueTtl : std::max<Duration>(play.ttl(), std::chrono::seconds(2));
  play.set_ttl(ttl);
  const Duration bound = bound_of(play);
  Actor& holder = play.client("holder");
  Actor& waiter = play.client("waiter");
  Actor& next = play.client("next");
  const Grant held = holder.must_acquire();
  waiter.start_acquire(ttl);
  waiter.await_waiting();
  // A client that waits at the server has only sent its request.
  play.wait_until(PlayClock::now() + kOnItsWay);
  play.set_ttl(kLongTtl);  // so that the next one still holds it when the waiter goes on
  next.start_acquire(bound + ttl / 4);
  next.await_waiting();
  waiter.stop();
  // An attempt that it had sent would get the lock.
  play.wait_until(PlayClock::now() + kOnItsWay);
  const TimePoint stopped_at = PlayClock::now();
  require_release(holder.release(held));
  const Grant grant = next.finish_acquire();
  Verdict verdict = verdict_of_return(play, grant, stopped_at, bound);
  verdict.reason += ", while the waiter before it was paused";
  if (verdict.outcome == HazardOutcome::stuck) return verdict;
  play.wait_until(stopped_at + ttl * 5 / 4);
  waiter.resume();
  const Grant late = waiter.finish_any_acquire();
  if (late.granted()) return verdict_of_two(play, late, "a waiter was paused, and resumed");
  return verdict;
}

/// The holder's TTL is long, so only the waiter's place or session can end.
Verdict long_wait(Play& play) {
  const Duration ttl = play.ttl();
  const Duration bound = std::max<Duration>(ttl, std::chrono::seconds(1));
  const Duration held_for = ttl * 5 / 2;
  Actor& holder = play.client("holder");
  Actor& waiter = play.client("waiter");
  play.set_ttl(kLongTtl);
  const Grant held = holder.must_acquire();
  play.set_ttl(ttl);
  waiter.start_acquire(held_for + bound + ttl);
  waiter.await_waiting();
  play.wait_until(PlayClock::now() + held_for);
  const TimePoint released_at = PlayClock::now();
  require_release(holder.release(held));
  const Grant grant = waiter.finish_acquire();
  if (grant.granted() && grant.answered_at < released_at) {
    return verdict_of_two(play, grant, "a client waited for longer than its TTL");
  }
  return verdict_of_return(play, grant, released_at, bound);
}

const ScenarioRegistration waiting_scenarios({
    {.name = "crash-waiting",
     .question = "A client dies while it waits, then the holder releases: is the next one served?",
     .default_outcome = HazardOutcome::recovers,
     .play = crash_waiting},
    {.name = "dead-waiters",
     .question =
         "As crash-waiting, behind one dead client and behind four: is the next one served?",
     .default_outcome = HazardOutcome::recovers,
     .play = dead_waiters},
    {.name = "pause-waiting",
     .question =
         "A waiter is paused for longer than the TTL: is the next one served, and it alone?",
     .default_outcome = HazardOutcome::recovers,
     .exempts = only_if([](const Descriptor& one) { return !one.traits.observed; },
                        "its candidates keep no place, and look less often than the bound"),
     .play = pause_waiting},
    {.name = "long-wait",
     .question = "A client waits for longer than its TTL, then the holder releases: is it served?",
     .default_outcome = HazardOutcome::recovers,
     .play = long_wait},
});

}  // namespace
}  // namespace lockbench::hazards
