#include "hazards/lapse.h"
#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

constexpr std::string_view kTooLong = "the work took longer than the TTL";

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

const ScenarioRegistration overrun_holding_scenario({
    .name = "overrun-holding",
    .question = "The work takes longer than the TTL: does the holder know before another enters?",
    .needs = Scenario::Needs::expiry_despite_contenders,
    .quick = true,
    .play =
        [](Play& play) {
          return play_lapse(play, {.what = kTooLong, .contends = true, .looks = true});
        },
});

const ScenarioRegistration overrun_holding_late_scenario({
    .name = "overrun-holding-late",
    .question = "As overrun-holding, but the contender first asks after the TTL: does it know?",
    .like = "overrun-holding",
    .needs = Scenario::Needs::expiry,
    .play = [](Play& play) { return play_lapse(play, {.what = kTooLong, .looks = true}); },
});

const ScenarioRegistration overrun_holding_fenced_scenario({
    .name = "overrun-holding-fenced",
    .question =
        "The holder writes after its TTL to a resource that checks numbers: is it rejected?",
    .needs = Scenario::Needs::expiry,
    .play = [](Play& play) { return play_lapse(play, {.what = kTooLong, .fenced = true}); },
});

const ScenarioRegistration runaway_holder_scenario({
    .name = "runaway-holder",
    .question = "The holder is alive but its work never ends: does the lock become free?",
    .default_outcome = HazardOutcome::recovers,
    .play = runaway_holder,
});

const ScenarioRegistration runaway_holder_capped_scenario({
    .name = "runaway-holder-capped",
    .question = "As runaway-holder, with --renew-cap: does the lock become free?",
    .default_outcome = HazardOutcome::recovers,
    .exempts = only_if([](const Descriptor& one) { return one.traits.renews; },
                       "it has no renewal timer"),
    .play = runaway_holder_capped,
});

}  // namespace
}  // namespace lockbench::hazards
