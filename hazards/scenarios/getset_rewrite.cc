#include <thread>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// Two find the lock run out. One stalls before the command that takes over, the other takes over
/// first: what does the late command do to the winner?
Verdict getset_rewrite(Play& play) {
  Actor& first = play.client("first");
  Actor& loser = play.client("loser");
  Actor& winner = play.client("winner");
  const Grant held = first.hold();
  first.kill();
  std::this_thread::sleep_until(held.valid_until.value_or(held.answered_at) +
                                std::chrono::milliseconds(50));
  play.ask_for_ttl(kLongTtl);
  loser.arm(CommandFault::Action::stall, CommandFault::Place::before,
            play.declared_acquire_commands());
  loser.ask({});
  loser.await_stop();
  // Expiries are written in milliseconds: the winner's must be another.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const Grant won = winner.hold();
  const std::string before = play.stage().value_of(play.key());
  loser.resume();
  const Grant lost = loser.answer();
  need_answer(lost);
  if (lost.granted()) return verdict_of_two(play, lost, "a late take-over");
  const std::string after = play.stage().value_of(play.key());
  if (after == before) throw StageFailure("the loser's late command did not rewrite the expiry");
  play.note("drift_milliseconds", std::int64_t{std::stoll(after) - std::stoll(before)});
  need_release(winner.release(won));
  const Grant next = play.client("next").acquire(std::chrono::seconds(1));
  need_answer(next);
  if (next.granted()) {
    return {HazardOutcome::safe,
            "the loser rewrote the expiry (see the drift), and the holder "
            "released its own lock all the same"};
  }
  return {HazardOutcome::stuck,
          "the loser rewrote the expiry, and the holder's release freed "
          "nothing"};
}

const ScenarioRegistration registration({
    .name = "getset-rewrite",
    .question = "A loser's late GETSET rewrites the expiry: can the holder still release?",
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.traits.release_check == OwnerCheck::local_clock) return std::nullopt;
      return "it keeps no time in its value";
    },
    .play = getset_rewrite,
});

}  // namespace
}  // namespace lockbench::hazards
