#include "hazards/lapse.h"

namespace lockbench::hazards {
namespace {

Lapse partition(Play& play) {
  return {.what = "the holder was cut off",
          .begin =
              [&play](Actor& holder) {
                for (const auto& line : holder.lines()) line->hold();
                play.record_fault("the network cuts the holder off from the store");
              },
          .end =
              [&play](Actor& holder) {
                for (const auto& line : holder.lines()) line->heal();
                play.record_fault("the holder's connection is restored");
              },
          .behind_line = true};
}

std::optional<std::string> only_with_connections(const Descriptor& strategy) {
  if (strategy.backend == "local") return "it has no connections";
  return std::nullopt;
}

const ScenarioRegistration plain({
    .name = "partition-holder",
    .question = "The network cuts the holder off for two TTLs: does it know before another enters?",
    .needs = Scenario::Needs::expiry_despite_contenders,
    .exempts = only_with_connections,
    .play =
        [](Play& play) {
          Lapse lapse = partition(play);
          lapse.contends = lapse.looks = true;
          return play_lapse(play, lapse);
        },
});

const ScenarioRegistration late({
    .name = "partition-holder-late",
    .question = "As partition-holder, but the contender first asks after the TTL: does it know?",
    .like = "partition-holder",
    .needs = Scenario::Needs::expiry,
    .exempts = only_with_connections,
    .play =
        [](Play& play) {
          Lapse lapse = partition(play);
          lapse.looks = true;
          return play_lapse(play, lapse);
        },
});

const ScenarioRegistration fenced({
    .name = "partition-holder-fenced",
    .question =
        "A holder that is cut off writes to a resource that checks numbers: is it rejected?",
    .like = "pause-holding-fenced",
    .needs = Scenario::Needs::expiry,
    .exempts = only_with_connections,
    .play =
        [](Play& play) {
          Lapse lapse = partition(play);
          lapse.fenced = true;
          return play_lapse(play, lapse);
        },
});

}  // namespace
}  // namespace lockbench::hazards
