#include "hazards/lapse.h"

namespace lockbench::hazards {
namespace {

/// Stops the holder between its look at the lease and its write.
Lapse pause() {
  return {.what = "the holder was paused",
          .begin = [](Actor& holder) { holder.stop(); },
          .end = [](Actor& holder) { holder.resume(); }};
}

const ScenarioRegistration plain({
    .name = "pause-holding",
    .question = "The holder is paused for longer than the TTL: does its stale write get through?",
    .needs = Scenario::Needs::expiry_despite_contenders,
    .quick = true,
    .dose = Dose::stall,
    .play =
        [](Play& play) {
          Lapse lapse = pause();
          lapse.contends = true;
          return play_lapse(play, lapse);
        },
});

const ScenarioRegistration late({
    .name = "pause-holding-late",
    .question = "As pause-holding, but the successor first asks after the TTL: is an update lost?",
    .like = "pause-holding",
    .needs = Scenario::Needs::expiry,
    .play = [](Play& play) { return play_lapse(play, pause()); },
});

const ScenarioRegistration fenced({
    .name = "pause-holding-fenced",
    .question =
        "As pause-holding, but the resource checks fencing numbers: is the stale write rejected?",
    .needs = Scenario::Needs::expiry,
    .quick = true,
    .play =
        [](Play& play) {
          Lapse lapse = pause();
          lapse.fenced = true;
          return play_lapse(play, lapse);
        },
});

}  // namespace
}  // namespace lockbench::hazards
