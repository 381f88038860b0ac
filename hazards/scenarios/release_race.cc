#include <fmt/format.h>

#include "hazards/lapse.h"
#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// Stalls a release before each of its commands in turn: one of these places is between check and
/// delete.
Verdict release_race(Play& play) {
  // Longer than the stall, so that the client does not miss the nodes' answers; shorter than the
  // play waits for the client.
  constexpr std::chrono::seconds kNodeTimeout{8};
  const Duration ttl = play.ttl();
  Verdict verdict = not_run_out("its holder was stopped");
  for (int place = 1, places = 1; place <= places; ++place) {
    Actor& holder = play.client("holder", {.node_timeout = kNodeTimeout});
    Actor& second = play.client("second");
    play.set_ttl(ttl);
    holder.warm_up();
    places = holder.release_commands();
    play.change_key();
    const Grant held = holder.must_acquire();
    const Duration wait = play.stuck_after();
    holder.arm(CommandFault::Action::stall, CommandFault::Place::before, place);
    holder.start_release(held);
    holder.await_stop();
    await_expiry(play, held);
    play.set_ttl(kLongTtl);
    const Grant next = second.acquire(wait);
    holder.resume();
    const ReleaseOutcome released = holder.finish_release();
    require_answer(next);
    if (!next.granted()) continue;
    require_late_release(holder, held, released);
    verdict = verdict_of_release(play, "second");
    if (verdict.outcome != HazardOutcome::safe) {
      verdict.reason += fmt::format(" (stalled before command {} of {})", place, places);
      return verdict;
    }
  }
  return verdict;
}

const ScenarioRegistration release_race_scenario({
    .name = "release-race",
    .question =
        "A client stalls between check and delete of its release: does it free another's lock?",
    .needs = Scenario::Needs::expiry,
    .quick = true,
    .play = release_race,
});

}  // namespace
}  // namespace lockbench::hazards
