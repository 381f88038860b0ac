#include "hazards/lapse.h"
#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// The holder's clock is set back after the grant, so that it computes that its lock is still
/// valid.
Verdict release_late(Play& play, Duration clock_behind) {
  Actor& holder = play.client("holder");
  const Grant held = holder.must_acquire();
  if (clock_behind > Duration::zero()) holder.shift_clock(-clock_behind);
  const Grant second = take_over(play, holder, held, play.client("second"));
  holder.resume();
  if (!second.granted()) return not_run_out("its holder was stopped");
  require_late_release(holder, held, holder.release(held));
  return verdict_of_release(play, "second");
}

const ScenarioRegistration late_release_scenario({
    .name = "late-release",
    .question =
        "The first holder releases after its lock expired: does it free the second client's lock?",
    .needs = Scenario::Needs::expiry,
    .quick = true,
    .play = [](Play& play) { return release_late(play, {}); },
});

const ScenarioRegistration holder_clock_behind_scenario({
    .name = "holder-clock-behind",
    .question = "The holder's clock is behind and it releases late: does it free another's lock?",
    .needs = Scenario::Needs::expiry,
    .exempts =
        only_if([](const Descriptor& one) { return one.traits.release_check != OwnerCheck::none; },
                "its release checks nothing, not even a clock: see late-release"),
    .play = [](Play& play) { return release_late(play, std::chrono::hours(1)); },
});

}  // namespace
}  // namespace lockbench::hazards
