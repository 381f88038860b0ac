#include <fmt/format.h>

#include <functional>
#include <thread>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// The first client is cut off from two nodes of five: it holds the lock by three votes, no more.
/// Then a fault takes one of these away, the cut heals, and a second client asks.
Verdict by_three_votes(Play& play, const std::function<void(const Grant&, Actor& second)>& fault) {
  Actor& holder = play.client("holder", {.behind_line = true});
  Actor& second = play.client("second");
  const auto& lines = holder.lines();
  lines.at(3)->black_hole();
  lines.at(4)->black_hole();
  play.tell("the holder is cut off from two nodes of five");
  const Grant held = holder.hold();
  lines.at(3)->heal();
  lines.at(4)->heal();
  play.tell("the cut heals");
  const TimePoint struck_at = std::chrono::steady_clock::now();
  fault(held, second);
  const Grant next = second.answer();
  if (next.granted() && next.asked_at > *held.valid_until) {
    throw StageFailure("the fault took longer than the lock lasts");
  }
  if (next.granted() && next.answered_at > *held.valid_until) {
    play.note("waited_past_validity_seconds", next.answered_at - *held.valid_until);
    return {HazardOutcome::safe,
            "the second client was granted the lock when the first one's was over"};
  }
  if (next.granted()) note_belief_gap(play, holder, held, struck_at);
  return verdict_of_two(play, next, "one of three votes was forgotten");
}

Verdict node_restart_empty(Play& play) {
  play.ask_for_ttl(kLongTtl);
  return by_three_votes(play, [&](const Grant&, Actor& second) {
    play.stage().kill_node(0);
    play.stage().revive_node(0);
    play.tell("one of the three nodes was killed and comes back empty");
    second.ask(std::chrono::seconds(2));
  });
}

/// The second client asks all the while.
Verdict node_restart_delayed(Play& play) {
  play.ask_for_ttl(std::chrono::seconds(3));
  return by_three_votes(play, [&](const Grant& held, Actor& second) {
    play.stage().kill_node(0);
    play.tell("one of the three nodes was killed, and is held back");
    second.ask(play.patience());
    std::this_thread::sleep_until(held.asked_at + play.ttl());
    play.stage().revive_node(0);
    play.tell("it comes back empty, a TTL later");
  });
}

Verdict clock_jump(Play& play) {
  play.ask_for_ttl(kLongTtl);
  return by_three_votes(play, [&](const Grant&, Actor& second) {
    play.stage().jump_clock(2 * kLongTtl);
    play.tell("the wall clock of one of the three nodes jumped ahead");
    second.ask(std::chrono::seconds(2));
  });
}

const ScenarioRegistration empty({
    .name = "redlock-node-restart-empty",
    .question = "One of three voters is killed and comes back empty: do two hold the lock?",
    .ground = Ground::volatile_,
    .quick = true,
    .exempts = unless_on_several_nodes,
    .play = node_restart_empty,
});

const ScenarioRegistration delayed({
    .name = "redlock-node-restart-delayed",
    .question = "The same, but it comes back only when a TTL is over: do two hold the lock?",
    .ground = Ground::volatile_,
    .exempts = unless_on_several_nodes,
    .play = node_restart_delayed,
});

const ScenarioRegistration jump({
    .name = "redlock-clock-jump",
    .question = "The wall clock of one of three voters jumps ahead: do two hold the lock?",
    .ground = Ground::clocked,
    .exempts = unless_on_several_nodes,
    .play = clock_jump,
});

}  // namespace
}  // namespace lockbench::hazards
