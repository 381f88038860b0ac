#include <fmt/format.h>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// After every command of an acquisition in turn: one of them is the first that changes the lock.
Verdict crash_mid_acquire(Play& play) {
  Actor& contender = play.client("contender");
  Verdict worst;
  for (int place = 1, places = 1; place <= places; ++place) {
    Actor& victim = play.client("victim");
    victim.rehearse();
    places = victim.acquire_commands();
    if (places == 0) break;
    play.change_key();
    contender.release(contender.hold());  // makes what there is but once per lock
    victim.arm(CommandFault::Action::die, CommandFault::Place::after, place);
    victim.ask(std::chrono::seconds(5));
    victim.await_death();
    const TimePoint died_at = std::chrono::steady_clock::now();
    const Grant grant = contender.acquire(play.patience());
    Verdict verdict = verdict_of_return(play, grant, died_at);
    verdict.reason += fmt::format(" (killed after command {} of {})", place, places);
    play.note("commands_of_an_acquisition", std::int64_t{places});
    if (verdict.outcome == HazardOutcome::stuck) return verdict;
    contender.release(grant);
    worst = verdict;
  }
  return worst;
}

const ScenarioRegistration registration({
    .name = "crash-mid-acquire",
    .question = "A client dies between the commands of its acquisition: does the lock come back?",
    .unless_declared = HazardOutcome::recovers,
    .quick = true,
    .play = crash_mid_acquire,
});

}  // namespace
}  // namespace lockbench::hazards
