#include <thread>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// Two clients find the lock expired. One stalls before its GETSET, the other one takes the lock
/// over. Then the late GETSET overwrites the winner's expiry.
Verdict getset_rewrite(Play& play) {
  Actor& first = play.client("first");
  Actor& loser = play.client("loser");
  Actor& winner = play.client("winner");
  const Grant held = first.must_acquire();
  first.kill();
  std::this_thread::sleep_until(held.valid_until.value_or(held.answered_at) +
                                std::chrono::milliseconds(50));
  play.set_ttl(kLongTtl);
  loser.arm(CommandFault::Action::stall, CommandFault::Place::before,
            play.declared_acquire_commands());
  loser.start_acquire({});
  loser.await_stop();
  // Expiries have millisecond resolution: the winner's must differ.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const Grant won = winner.must_acquire();
  const std::string before = play.store().value_of(play.key());
  loser.resume();
  const Grant lost = loser.finish_acquire();
  require_answer(lost);
  if (lost.granted()) return verdict_of_two(play, lost, "a GETSET came late");
  const std::string after = play.store().value_of(play.key());
  if (after == before) throw Failure("the loser's late GETSET did not change the expiry");
  play.note("drift_milliseconds", std::int64_t{std::stoll(after) - std::stoll(before)});
  require_release(winner.release(won));
  const Grant next = play.client("next").acquire(std::chrono::seconds(1));
  require_answer(next);
  if (next.granted()) {
    return {HazardOutcome::safe,
            "the loser changed the expiry (see drift_milliseconds); the holder could still "
            "release its lock"};
  }
  return {HazardOutcome::stuck,
          "the loser changed the expiry, and the holder could no longer release its lock"};
}

const ScenarioRegistration getset_rewrite_scenario({
    .name = "getset-rewrite",
    .question = "A losing client's late GETSET changes the expiry: can the holder still release?",
    .exempts = only_if(
        [](const Descriptor& one) { return one.traits.release_check == OwnerCheck::local_clock; },
        "its value contains no expiry time"),
    .play = getset_rewrite,
});

}  // namespace
}  // namespace lockbench::hazards
