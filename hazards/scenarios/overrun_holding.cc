#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

Verdict overrun_holding(Play& play) {
  Actor& holder = play.client("holder");
  const Grant held = holder.hold();
  const Grant second = play.client("second", watchful()).acquire(play.patience());
  if (second.granted()) note_belief_gap(play, holder, held, second.answered_at);
  return verdict_of_two(play, second, "the work took longer than the lock lasts");
}

Verdict runaway_holder(Play& play) {
  const Grant held = play.client("holder").hold();
  const Grant next = play.client("contender").acquire(play.patience());
  return verdict_of_return(play, next, held.answered_at);
}

/// The same with a bound on what renewal may add.
Verdict runaway_holder_capped(Play& play) {
  const Grant held = play.client("holder", {.renew_cap = 2 * play.ttl()}).hold();
  const Grant next = play.client("contender").acquire(play.patience());
  return verdict_of_return(play, next, held.answered_at);
}

const ScenarioRegistration overrun({
    .name = "overrun-holding",
    .question = "The work simply takes longer than the lock lasts: do two hold it?",
    .quick = true,
    .dose = Dose::hold,
    .play = overrun_holding,
});

const ScenarioRegistration runaway({
    .name = "runaway-holder",
    .question = "The holder lives, and its work never ends: does the lock ever come back?",
    .unless_declared = HazardOutcome::recovers,
    .play = runaway_holder,
});

const ScenarioRegistration capped({
    .name = "runaway-holder-capped",
    .question = "The same, and renewal may not go on for ever: does the lock come back?",
    .unless_declared = HazardOutcome::recovers,
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.traits.renews) return std::nullopt;
      return "no timer renews it that could be bounded";
    },
    .play = runaway_holder_capped,
});

}  // namespace
}  // namespace lockbench::hazards
