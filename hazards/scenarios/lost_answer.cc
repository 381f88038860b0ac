#include <fmt/format.h>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// Drops the answer to each command of an acquisition in turn.
Verdict lost_answer_acquire(Play& play) {
  play.set_ttl(std::chrono::seconds(2));
  Verdict verdict{HazardOutcome::safe, "it sends no command"};
  for (int place = 1, places = 1; place <= places; ++place) {
    Actor& client = play.client("client");
    client.warm_up();
    places = client.acquire_commands();
    if (places == 0) break;
    play.change_key();
    client.release(
        client.must_acquire());  // creates what exists once per lock, such as a parent node
    client.arm(CommandFault::Action::drop_answer, CommandFault::Place::after, place);
    const Grant first = client.acquire(std::chrono::seconds(1));
    if (first.granted()) {
      verdict.reason = "the client was granted the lock all the same";
      client.release(first);
      continue;
    }
    const Grant again = client.acquire(2 * play.ttl());
    require_answer(again);
    const Duration took = again.answered_at - first.answered_at;
    play.note("second_try_seconds", took);
    if (!again.granted() || took > play.ttl() / 2) {
      return {
          HazardOutcome::stuck,
          fmt::format(
              "the client did not recognise its own lock: {} after {} (answer to command {} of "
              "{} lost)",
              again.granted() ? "granted" : "still refused", milliseconds(took), place, places)};
    }
    verdict.reason = "the client got the lock again within " + milliseconds(took);
    client.release(again);
  }
  return verdict;
}

/// Drops the answer to each command of a release in turn.
Verdict lost_answer_release(Play& play) {
  play.set_ttl(kLongTtl);
  Verdict verdict{HazardOutcome::safe, "it sends no command"};
  for (int place = 1, places = 1; place <= places; ++place) {
    Actor& holder = play.client("holder");
    Actor& successor = play.client("successor");
    holder.warm_up();
    places = holder.release_commands();
    if (places == 0) break;
    play.change_key();
    const Grant held = holder.must_acquire();
    holder.arm(CommandFault::Action::drop_answer, CommandFault::Place::after, place);
    holder.release(held);
    const Grant next = successor.acquire(std::chrono::seconds(1));
    require_answer(next);
    require_release(holder.release(held));
    if (!next.granted()) continue;  // that command does not release the lock
    verdict = verdict_of_release(play, "successor");
    if (verdict.outcome != HazardOutcome::safe) {
      verdict.reason += fmt::format(" (answer to command {} of {} lost)", place, places);
      return verdict;
    }
  }
  return verdict;
}

const ScenarioRegistration lost_answer_acquire_scenario({
    .name = "lost-answer-acquire",
    .question =
        "The answer to an acquisition is lost, the client retries: does it recognise its own lock?",
    .play = lost_answer_acquire,
});

const ScenarioRegistration lost_answer_release_scenario({
    .name = "lost-answer-release",
    .question =
        "The answer to a release is lost, the client repeats it: does it free another's lock?",
    .play = lost_answer_release,
});

}  // namespace
}  // namespace lockbench::hazards
