#include "hazards/lapse.h"
#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

Verdict partition(Play& play, Lapse lapse) {
  lapse.what = "the holder was cut off";
  lapse.begin = [&play](Actor& holder) {
    for (const auto& line : holder.lines()) line->hold();
    play.record_fault("the network cuts the holder off from the store");
  };
  lapse.end = [&play](Actor& holder) {
    for (const auto& line : holder.lines()) line->heal();
    play.record_fault("the holder's connection is restored");
  };
  lapse.behind_line = true;
  return play_lapse(play, lapse);
}

const ScenarioRegistration partition_holder_scenario({
    .name = "partition-holder",
    .question = "The network cuts the holder off for two TTLs: does it know before another enters?",
    .needs = Scenario::Needs::expiry_despite_contenders,
    .exempts = only_with_connections,
    .play = [](Play& play) { return partition(play, {.contends = true, .looks = true}); },
});

const ScenarioRegistration partition_holder_late_scenario({
    .name = "partition-holder-late",
    .question = "As partition-holder, but the contender first asks after the TTL: does it know?",
    .like = "partition-holder",
    .needs = Scenario::Needs::expiry,
    .exempts = only_with_connections,
    .play = [](Play& play) { return partition(play, {.looks = true}); },
});

const ScenarioRegistration partition_holder_fenced_scenario({
    .name = "partition-holder-fenced",
    .question =
        "A holder that is cut off writes to a resource that checks numbers: is it rejected?",
    .like = "pause-holding-fenced",
    .needs = Scenario::Needs::expiry,
    .exempts = only_with_connections,
    .play = [](Play& play) { return partition(play, {.fenced = true}); },
});

}  // namespace
}  // namespace lockbench::hazards
