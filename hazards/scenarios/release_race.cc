#include <fmt/format.h>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// Before every command of a release in turn: one of these places lies between check and delete.
Verdict release_race(Play& play) {
  // The stall is not to cost it the answers of a quorum's nodes, nor they the play its answer.
  constexpr std::chrono::seconds kNodeTimeout{8};
  const Duration ttl = play.ttl();
  Verdict verdict;
  for (int place = 1, places = 1; place <= places; ++place) {
    Actor& holder = play.client("holder", {.node_timeout = kNodeTimeout});
    Actor& second = play.client("second");
    play.ask_for_ttl(ttl);
    holder.rehearse();
    places = holder.release_commands();
    play.change_key();
    const Grant held = holder.hold();
    const Duration wait = play.patience();
    holder.arm(CommandFault::Action::stall, CommandFault::Place::before, place);
    holder.begin_release(held);
    holder.await_stop();
    play.ask_for_ttl(kLongTtl);
    const Grant next = second.acquire(wait);
    holder.resume();
    const ReleaseOutcome released = holder.end_release();
    need_answer(next);
    if (!next.granted()) {
      verdict.reason = "the lock did not run out while its holder stood still";
      continue;
    }
    need_late_release(holder, held, released);
    verdict = verdict_of_release(play, "second");
    if (verdict.outcome != HazardOutcome::safe) {
      verdict.reason += fmt::format(" (stalled before command {} of {})", place, places);
      return verdict;
    }
  }
  return verdict;
}

const ScenarioRegistration registration({
    .name = "release-race",
    .question = "A client stalls between its check and its delete: does it free another's lock?",
    .quick = true,
    .play = release_race,
});

}  // namespace
}  // namespace lockbench::hazards
