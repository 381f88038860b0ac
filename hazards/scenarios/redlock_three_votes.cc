#include <fmt/format.h>

#include <functional>
#include <thread>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// The first client is cut off from two of five nodes, so it holds the lock with exactly three
/// votes. The network heals, a fault removes one of the votes, and a second client acquires.
Verdict by_three_votes(Play& play, const std::function<void(const Grant&, Actor& second)>& fault) {
  Actor& holder = play.client("holder", {.behind_line = true});
  Actor& second = play.client("second");
  const auto& lines = holder.lines();
  lines.at(3)->black_hole();
  lines.at(4)->black_hole();
  play.record_fault("the network cuts the holder off from two of five nodes");
  const Grant held = holder.must_acquire();
  lines.at(3)->heal();
  lines.at(4)->heal();
  play.record_fault("the network heals");
  const TimePoint struck_at = BootClock::now();
  fault(held, second);
  const Grant next = second.finish_acquire();
  if (next.granted() && next.asked_at > *held.valid_until) {
    throw Failure("the fault took longer than the lock lasts");
  }
  if (next.granted() && next.answered_at > *held.valid_until) {
    play.note("waited_past_validity_seconds", next.answered_at - *held.valid_until);
    return {HazardOutcome::safe,
            "the second client got the lock only after the first one's had expired"};
  }
  if (next.granted()) record_belief_gap(play, holder, held, struck_at);
  return verdict_of_two(play, next, "one of three votes was lost");
}

Verdict node_restart_empty(Play& play) {
  play.set_ttl(kLongTtl);
  return by_three_votes(play, [&](const Grant&, Actor& second) {
    play.store().kill_node(0);
    play.store().revive_node(0);
    play.record_fault("one of the three voters was killed and restarted empty");
    second.start_acquire(std::chrono::seconds(2));
  });
}

/// The second client keeps asking.
Verdict node_restart_delayed(Play& play) {
  play.set_ttl(std::chrono::seconds(3));
  return by_three_votes(play, [&](const Grant& held, Actor& second) {
    play.store().kill_node(0);
    play.record_fault("one of the three voters was killed");
    second.start_acquire(play.stuck_after());
    std::this_thread::sleep_until(held.asked_at + play.ttl());
    play.store().revive_node(0);
    play.record_fault("it restarts empty, one TTL later");
  });
}

Verdict node_clock_jump(Play& play) {
  play.set_ttl(kLongTtl);
  return by_three_votes(play, [&](const Grant&, Actor& second) {
    play.store().jump_clock(2 * kLongTtl);
    play.record_fault("the wall clock of one of the three voters jumped ahead");
    second.start_acquire(std::chrono::seconds(2));
  });
}

const ScenarioRegistration redlock_node_restart_empty_scenario({
    .name = "redlock-node-restart-empty",
    .question = "One of three voters is killed and restarts empty: do two clients hold the lock?",
    .setup = Setup::volatile_,
    .quick = true,
    .exempts = only_for_quorums,
    .play = node_restart_empty,
});

const ScenarioRegistration redlock_node_restart_delayed_scenario({
    .name = "redlock-node-restart-delayed",
    .question = "As before, but it restarts only after one TTL: do two clients hold the lock?",
    .setup = Setup::volatile_,
    .exempts = only_for_quorums,
    .play = node_restart_delayed,
});

const ScenarioRegistration redlock_clock_jump_scenario({
    .name = "redlock-clock-jump",
    .question = "The wall clock of one of three voters jumps ahead: do two clients hold the lock?",
    .setup = Setup::clocked,
    .exempts = only_for_quorums,
    .play = node_clock_jump,
});

}  // namespace
}  // namespace lockbench::hazards
