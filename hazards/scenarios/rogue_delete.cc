#include <fmt/format.h>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

Verdict rogue_delete(Play& play) {
  play.set_ttl(std::chrono::seconds(6));
  Actor& holder = play.client("holder");
  Actor& contender = play.client("contender");
  const Grant held = holder.must_acquire();
  const TimePoint struck_at = BootClock::now();
  const bool deleted = play.store().remove_key(play.key());
  const std::string what =
      fmt::format("an outside client {} the key in {}", deleted ? "deleted" : "could not delete",
                  play.store().struck());
  play.record_fault(what);
  play.note("key_deleted", deleted);
  const Grant second = contender.acquire(std::chrono::seconds(1));
  if (second.granted()) record_belief_gap(play, holder, held, struck_at);
  return verdict_of_two(play, second, what);
}

const ScenarioRegistration rogue_delete_scenario({
    .name = "rogue-delete",
    .question = "An outside client deletes the key: do two clients hold the lock?",
    .play = rogue_delete,
});

}  // namespace
}  // namespace lockbench::hazards
