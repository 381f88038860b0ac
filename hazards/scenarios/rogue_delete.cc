#include <fmt/format.h>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

Verdict rogue_delete(Play& play) {
  play.ask_for_ttl(std::chrono::seconds(6));
  Actor& holder = play.client("holder");
  Actor& contender = play.client("contender");
  const Grant held = holder.hold();
  const TimePoint struck_at = std::chrono::steady_clock::now();
  const bool deleted = play.stage().remove_key(play.key());
  const std::string what =
      fmt::format("somebody {} the key in {}", deleted ? "deleted" : "tried in vain to delete",
                  play.stage().struck());
  play.tell(what);
  play.note("key_deleted", deleted);
  const Grant second = contender.acquire(std::chrono::seconds(1));
  if (second.granted()) note_belief_gap(play, holder, held, struck_at);
  return verdict_of_two(play, second, what);
}

const ScenarioRegistration registration({
    .name = "rogue-delete",
    .question = "Somebody deletes the key from outside: do two hold the lock?",
    .play = rogue_delete,
});

}  // namespace
}  // namespace lockbench::hazards
