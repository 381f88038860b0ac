#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

Verdict late_release(Play& play) {
  Actor& holder = play.client("holder");
  const Grant held = holder.must_acquire();
  const Grant second = take_over(play, holder, play.client("second"));
  holder.resume();
  if (!second.granted()) {
    return {HazardOutcome::safe, "the lock did not expire while its holder was stopped"};
  }
  require_late_release(holder, held, holder.release(held));
  return verdict_of_release(play, "second");
}

/// The clock moves after the grant, so that the holder computes that its lock is still valid.
Verdict holder_clock_behind(Play& play) {
  Actor& holder = play.client("holder");
  const Grant held = holder.must_acquire();
  holder.shift_clock(-std::chrono::hours(1));
  const Grant second = take_over(play, holder, play.client("second"));
  holder.resume();
  if (!second.granted()) {
    return {HazardOutcome::safe, "the lock did not expire while its holder was stopped"};
  }
  require_late_release(holder, held, holder.release(held));
  return verdict_of_release(play, "second");
}

const ScenarioRegistration late({
    .name = "late-release",
    .question =
        "The first holder releases after its lock expired: does it free the second client's lock?",
    .quick = true,
    .play = late_release,
});

const ScenarioRegistration behind({
    .name = "holder-clock-behind",
    .question = "The holder's clock is behind and it releases late: does it free another's lock?",
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.traits.release_check != OwnerCheck::none) return std::nullopt;
      return "its release checks nothing, not even a clock: see late-release";
    },
    .play = holder_clock_behind,
});

}  // namespace
}  // namespace lockbench::hazards
