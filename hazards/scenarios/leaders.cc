#include <fmt/format.h>

#include <vector>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

// Clusters of three members whose leader changes, by a restart, a freeze or a crash.

/// For a cluster to elect a leader, and for a client to find it.
constexpr std::chrono::seconds kElection{20};

/// The followers first, the leader last, as in an upgrade; the next one once the last is ready.
Verdict rolling_restart(Play& play) {
  play.set_ttl(kLongTtl);
  Actor& holder = play.client("holder");
  Actor& second = play.client("second");
  const std::size_t leading = play.store().member(true);
  std::vector<std::size_t> order = play.store().others_than(leading);
  order.push_back(leading);
  const Grant held = holder.must_acquire();
  const TimePoint began = PlayClock::now();
  constexpr std::string_view kWhat = "the members were restarted one after the other";
  for (const std::size_t member : order) {
    play.store().restart_member(member);
    play.record_fault(fmt::format("member {}{} was killed and restarted", member + 1,
                                  member == leading ? ", the leader," : ""));
    const Grant next = acquire_at_last(second, {}, kElection);
    if (next.granted()) return verdict_of_belief(play, holder, held, next, kWhat);
  }
  play.note("restarts_seconds", PlayClock::now() - began);
  if (!holder.belief(held).valid) {
    return {HazardOutcome::known_loss,
            fmt::format("{}: the holder does not treat the lock as its own any more", kWhat)};
  }
  require_late_release(holder, held, holder.release(held));
  if (!acquire_at_last(second, std::chrono::seconds(2), kElection).granted()) {
    return {HazardOutcome::stuck, "after the restarts, the holder's release did not free the lock"};
  }
  return {HazardOutcome::safe, fmt::format("{}: the holder kept the lock", kWhat)};
}

/// The leader stands still until the sessions that it knows have ended for it. Its successor has
/// renewed them meanwhile. Clients are connected to the other members.
Verdict leader_frozen(Play& play) {
  // etcd gives up a lost request after 6 s, and makes the next ones then.
  constexpr std::chrono::seconds kTtl{4}, kFrozen{6}, kAfter{10};
  constexpr std::chrono::milliseconds kReconnecting{200};
  play.set_ttl(kTtl);
  const std::size_t leading = play.store().member(true);
  const auto others = play.store().others_than(leading);
  Actor& holder = play.client("holder", {.members = others});
  Actor& second = play.client("second", {.members = others});
  const Grant held = holder.must_acquire();
  play.store().freeze_leader();
  // As etcd does after 5 s, the others close their connections to it.
  play.store().isolate(leading);
  const TimePoint frozen_at = PlayClock::now();
  play.record_fault("the leader stands still");
  second.start_acquire(kFrozen + kAfter);
  play.wait_until(frozen_at + kFrozen);
  play.store().thaw_leader();
  play.record_fault("the former leader goes on");
  // It looks for sessions that are over at once, and has the others' connections a little later.
  play.wait_until(frozen_at + kFrozen + kReconnecting);
  play.store().reunite();
  Grant next = second.finish_any_acquire();
  if (next.unanswered()) next = acquire_at_last(second, kAfter, kElection);
  play.note("second_granted", next.granted());
  if (!next.granted()) {
    return {HazardOutcome::safe, "the holder's session went on under the new leader"};
  }
  play.note("seconds_after_the_freeze", next.answered_at - frozen_at - kFrozen);
  return verdict_of_belief(play, holder, held, next, "the leader stood still, and went on");
}

/// A new leader does not know when sessions were last renewed, and gives each its whole TTL again.
Verdict crash_holding_leader_change(Play& play) {
  constexpr std::chrono::seconds kTtl{4}, kElections{6};
  constexpr int kChanges = 2;
  constexpr Duration kBound = (kChanges + 1) * kTtl + kElections;
  play.set_ttl(kTtl);
  Actor& holder = play.client("holder");
  Actor& contender = play.client("contender");
  holder.must_acquire();
  contender.start_acquire(kBound);
  contender.await_waiting();
  holder.kill();
  const TimePoint died_at = PlayClock::now();
  for (int change = 1; change <= kChanges; ++change) {
    // Within the TTL that the latest leader has given.
    play.wait_until(died_at + change * (kTtl * 3 / 5));
    play.store().kill_leader();
    play.record_fault("the leader was killed");
    play.store().replace_leader();
    play.record_fault("it came back, and another one leads");
  }
  Grant grant = contender.finish_any_acquire();
  if (grant.unanswered()) grant = acquire_at_last(contender, kBound, kElection);
  play.note("leader_changes", std::int64_t{kChanges});
  play.note("takeover_ttls", seconds(grant.answered_at - died_at) / seconds(Duration(kTtl)));
  return verdict_of_return(play, grant, died_at, kBound);
}

const ScenarioRegistration leaders_scenarios({
    {.name = "rolling-restart",
     .question = "All members are restarted, one after the other: does the holder keep its lock?",
     .setup = Setup::replicated,
     .exempts = only_for_clusters,
     .play = rolling_restart},
    {.name = "leader-frozen",
     .question = "The leader stands still for longer than the TTL: does it end renewed sessions?",
     .setup = Setup::split,
     .exempts = only_for_clusters,
     .play = leader_frozen},
    {.name = "crash-holding-leader-change",
     .question = "A holder dies, then two leaders: does the lock become free, and when?",
     .default_outcome = HazardOutcome::recovers,
     .setup = Setup::replicated,
     .exempts = only_for_clusters,
     .play = crash_holding_leader_change},
});

}  // namespace
}  // namespace lockbench::hazards
