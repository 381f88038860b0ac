#include <fmt/format.h>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// On a quorum answers come in any order, some after the grant. So the fault is placed before the
/// next command is sent.
void die_after(Play& play, Actor& victim, int place, int places) {
  if (play.traits().nodes > 1 && place == places) {
    victim.must_acquire();
    victim.kill();
    return;
  }
  if (play.traits().nodes > 1) {
    victim.arm(CommandFault::Action::die, CommandFault::Place::before, place + 1);
  } else {
    victim.arm(CommandFault::Action::die, CommandFault::Place::after, place);
  }
  victim.start_acquire(std::chrono::seconds(5));
  victim.await_death();
}

/// Kills a client after each command of an acquisition in turn: one of them is the first that
/// changes the lock.
Verdict crash_mid_acquire(Play& play) {
  Actor& contender = play.client("contender");
  Verdict slowest;
  Duration longest{};
  for (int place = 1, places = 1; place <= places; ++place) {
    Actor& victim = play.client("victim");
    victim.warm_up();
    places = victim.acquire_commands();
    if (places == 0) break;
    play.change_key();
    contender.release(
        contender.must_acquire());  // creates what exists once per lock, such as a parent node
    die_after(play, victim, place, places);
    const TimePoint died_at = BootClock::now();
    const Grant grant = contender.acquire(play.stuck_after());
    Verdict verdict = verdict_of_return(play, grant, died_at);
    verdict.reason += fmt::format(" (killed after command {} of {})", place, places);
    play.note("commands_of_an_acquisition", std::int64_t{places});
    if (verdict.outcome == HazardOutcome::stuck) return verdict;
    contender.release(grant);
    if (const Duration took = grant.answered_at - died_at; took >= longest) {
      longest = took;
      slowest = std::move(verdict);
    }
    play.note("recovery_seconds", longest);
  }
  return slowest;
}

const ScenarioRegistration crash_mid_acquire_scenario({
    .name = "crash-mid-acquire",
    .question = "A client dies between the commands of its acquisition: does the lock become free?",
    .default_outcome = HazardOutcome::recovers,
    .quick = true,
    .play = crash_mid_acquire,
});

}  // namespace
}  // namespace lockbench::hazards
