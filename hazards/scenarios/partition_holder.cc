#include <thread>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

Verdict partition_holder(Play& play) {
  Actor& holder = play.client("holder", {.behind_line = true});
  const Grant held = holder.hold();
  for (const auto& line : holder.lines()) line->hold();
  play.tell("the holder is cut off from the store");
  // Twice the TTL, and what stores add to it.
  const Grant second = play.client("second", watchful()).acquire(3 * play.ttl());
  std::this_thread::sleep_until(held.answered_at + 2 * play.ttl());
  for (const auto& line : holder.lines()) line->heal();
  play.tell("the holder's line is whole again");
  if (second.granted()) note_belief_gap(play, holder, held, second.answered_at);
  return verdict_of_two(play, second, "the holder was cut off");
}

const ScenarioRegistration registration({
    .name = "partition-holder",
    .question = "The holder is cut off from the store for two TTLs: do two hold the lock?",
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.backend == "local") return "it has no connections";
      return std::nullopt;
    },
    .play = partition_holder,
});

}  // namespace
}  // namespace lockbench::hazards
