#include <thread>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

Verdict partition_holder(Play& play) {
  Actor& holder = play.client("holder", {.behind_line = true});
  const Grant held = holder.must_acquire();
  for (const auto& line : holder.lines()) line->hold();
  play.record_fault("the network cuts the holder off from the store");
  // Two TTLs, and what stores add to a session.
  const Grant second = play.client("second", fast_polling()).acquire(3 * play.ttl());
  std::this_thread::sleep_until(held.answered_at + 2 * play.ttl());
  for (const auto& line : holder.lines()) line->heal();
  play.record_fault("the holder's connection is restored");
  if (second.granted()) record_belief_gap(play, holder, held, second.answered_at);
  return verdict_of_two(play, second, "the holder was cut off");
}

const ScenarioRegistration registration({
    .name = "partition-holder",
    .question = "The network cuts the holder off for two TTLs: do two clients hold the lock?",
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.backend == "local") return "it has no connections";
      return std::nullopt;
    },
    .play = partition_holder,
});

}  // namespace
}  // namespace lockbench::hazards
