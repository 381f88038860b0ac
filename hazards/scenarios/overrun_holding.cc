#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

Verdict overrun_holding(Play& play) {
  Actor& holder = play.client("holder");
  const Grant held = holder.must_acquire();
  const Grant second = play.client("second", fast_polling()).acquire(play.stuck_after());
  if (second.granted()) record_belief_gap(play, holder, held, second.answered_at);
  return verdict_of_two(play, second, "the work took longer than the TTL");
}

Verdict runaway_holder(Play& play) {
  const Grant held = play.client("holder").must_acquire();
  const Grant next = play.client("contender").acquire(play.stuck_after());
  return verdict_of_return(play, next, held.answered_at);
}

/// The same with a cap on the total renewal.
Verdict runaway_holder_capped(Play& play) {
  const Grant held = play.client("holder", {.renew_cap = 2 * play.ttl()}).must_acquire();
  const Grant next = play.client("contender").acquire(play.stuck_after());
  return verdict_of_return(play, next, held.answered_at);
}

const ScenarioRegistration overrun({
    .name = "overrun-holding",
    .question = "The work takes longer than the TTL: do two clients hold the lock?",
    .quick = true,
    .dose = Dose::hold,
    .play = overrun_holding,
});

const ScenarioRegistration runaway({
    .name = "runaway-holder",
    .question = "The holder is alive but its work never ends: does the lock become free?",
    .default_outcome = HazardOutcome::recovers,
    .play = runaway_holder,
});

const ScenarioRegistration capped({
    .name = "runaway-holder-capped",
    .question = "As runaway-holder, with --renew-cap: does the lock become free?",
    .default_outcome = HazardOutcome::recovers,
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.traits.renews) return std::nullopt;
      return "it has no renewal timer";
    },
    .play = runaway_holder_capped,
});

}  // namespace
}  // namespace lockbench::hazards
