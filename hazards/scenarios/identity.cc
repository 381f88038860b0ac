#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

Verdict owner_collision(Play& play) {
  play.set_ttl(kLongTtl);
  play.client("holder", {.number = 1}).must_acquire();
  const Grant twin = play.client("twin", {.number = 1}).acquire();
  return verdict_of_two(play, twin, "two processes use the same client number");
}

Verdict client_clock_ahead(Play& play) {
  play.set_ttl(kLongTtl);
  Actor& contender = play.client("contender");
  contender.shift_clock(std::chrono::hours(1));
  play.client("holder").must_acquire();
  return verdict_of_two(play, contender.acquire(), "the contender's clock is ahead");
}

const ScenarioRegistration owner_collision_scenario({
    .name = "owner-collision",
    .question = "Two processes use the same client number: do both hold the lock?",
    .play = owner_collision,
});

const ScenarioRegistration client_clock_ahead_scenario({
    .name = "client-clock-ahead",
    .question = "A contender's clock is ahead: does it take the lock away from its holder?",
    .play = client_clock_ahead,
});

}  // namespace
}  // namespace lockbench::hazards
