#include <fmt/format.h>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// The answer to every command of an acquisition in turn.
Verdict lost_answer_acquire(Play& play) {
  play.ask_for_ttl(std::chrono::seconds(2));
  Verdict verdict{HazardOutcome::safe, "it has nothing to lose"};
  for (int place = 1, places = 1; place <= places; ++place) {
    Actor& client = play.client("client");
    client.rehearse();
    places = client.acquire_commands();
    if (places == 0) break;
    play.change_key();
    client.release(client.hold());  // makes what there is but once per lock
    client.arm(CommandFault::Action::drop_answer, CommandFault::Place::after, place);
    const Grant first = client.acquire(std::chrono::seconds(1));
    if (first.granted()) {
      verdict.reason = "granted all the same";
      client.release(first);
      continue;
    }
    const Grant again = client.acquire(2 * play.ttl());
    need_answer(again);
    const Duration took = again.answered_at - first.answered_at;
    play.note("second_try_seconds", took);
    if (!again.granted() || took > play.ttl() / 2) {
      return {
          HazardOutcome::stuck,
          fmt::format("its own lock looked foreign to it: {} after {} (answer to command {} of {} "
                      "lost)",
                      again.granted() ? "granted" : "still refused", milliseconds(took), place,
                      places)};
    }
    verdict.reason = "granted again within " + milliseconds(took);
    client.release(again);
  }
  return verdict;
}

/// The answer to every command of a release in turn.
Verdict lost_answer_release(Play& play) {
  play.ask_for_ttl(kLongTtl);
  Verdict verdict{HazardOutcome::safe, "it has nothing to lose"};
  for (int place = 1, places = 1; place <= places; ++place) {
    Actor& holder = play.client("holder");
    Actor& successor = play.client("successor");
    holder.rehearse();
    places = holder.release_commands();
    if (places == 0) break;
    play.change_key();
    const Grant held = holder.hold();
    holder.arm(CommandFault::Action::drop_answer, CommandFault::Place::after, place);
    holder.release(held);
    const Grant next = successor.acquire(std::chrono::seconds(1));
    need_answer(next);
    need_release(holder.release(held));
    if (!next.granted()) continue;  // that command had not released it
    verdict = verdict_of_release(play, "successor");
    if (verdict.outcome != HazardOutcome::safe) {
      verdict.reason += fmt::format(" (answer to command {} of {} lost)", place, places);
      return verdict;
    }
  }
  return verdict;
}

const ScenarioRegistration acquire({
    .name = "lost-answer-acquire",
    .question =
        "A grant's answer is lost and the client asks again: is its own lock foreign to it?",
    .play = lost_answer_acquire,
});

const ScenarioRegistration release({
    .name = "lost-answer-release",
    .question =
        "A release's answer is lost and the client repeats it: does it free another's lock?",
    .play = lost_answer_release,
});

}  // namespace
}  // namespace lockbench::hazards
