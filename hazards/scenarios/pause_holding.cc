#include "hazards/lapse.h"

namespace lockbench::hazards {
namespace {

/// Stops the holder between its look at the lease and its write.
Verdict pause(Play& play, Lapse lapse) {
  lapse.what = "the holder was paused";
  lapse.begin = [](Actor& holder) { holder.stop(); };
  lapse.end = [](Actor& holder) { holder.resume(); };
  return play_lapse(play, lapse);
}

const ScenarioRegistration pause_holding_scenario({
    .name = "pause-holding",
    .question = "The holder is paused for longer than the TTL: does its stale write get through?",
    .needs = Scenario::Needs::expiry_despite_contenders,
    .quick = true,
    .play = [](Play& play) { return pause(play, {.contends = true}); },
});

const ScenarioRegistration pause_holding_late_scenario({
    .name = "pause-holding-late",
    .question = "As pause-holding, but the successor first asks after the TTL: is an update lost?",
    .like = "pause-holding",
    .needs = Scenario::Needs::expiry,
    .play = [](Play& play) { return pause(play, {}); },
});

const ScenarioRegistration pause_holding_fenced_scenario({
    .name = "pause-holding-fenced",
    .question =
        "As pause-holding, but the resource checks fencing numbers: is the stale write rejected?",
    .needs = Scenario::Needs::expiry,
    .quick = true,
    .play = [](Play& play) { return pause(play, {.fenced = true}); },
});

}  // namespace
}  // namespace lockbench::hazards
