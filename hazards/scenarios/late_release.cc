#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

Verdict late_release(Play& play) {
  Actor& holder = play.client("holder");
  const Grant held = holder.hold();
  const Grant second = overtake(play, holder, play.client("second"));
  holder.resume();
  if (!second.granted()) {
    return {HazardOutcome::safe, "the lock did not run out while its holder stood still"};
  }
  need_late_release(holder, held, holder.release(held));
  return verdict_of_release(play, "second");
}

/// Its clock goes wrong after the grant, so that by its own reckoning the lock is still its own.
Verdict holder_clock_behind(Play& play) {
  Actor& holder = play.client("holder");
  const Grant held = holder.hold();
  holder.shift_clock(-std::chrono::hours(1));
  const Grant second = overtake(play, holder, play.client("second"));
  holder.resume();
  if (!second.granted()) {
    return {HazardOutcome::safe, "the lock did not run out while its holder stood still"};
  }
  need_late_release(holder, held, holder.release(held));
  return verdict_of_release(play, "second");
}

const ScenarioRegistration late({
    .name = "late-release",
    .question = "The first holder releases after its lock ran out: does it free the second's?",
    .quick = true,
    .play = late_release,
});

const ScenarioRegistration behind({
    .name = "holder-clock-behind",
    .question = "The holder's clock is behind, so it believes and releases late: another's lock?",
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.traits.release_check != OwnerCheck::none) return std::nullopt;
      return "its release looks at nothing, a clock included: see late-release";
    },
    .play = holder_clock_behind,
});

}  // namespace
}  // namespace lockbench::hazards
