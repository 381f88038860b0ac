#include <fmt/format.h>

#include <algorithm>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// Waits until a lock that nobody renews has expired, with a margin for stores that count whole
/// seconds or ticks.
void await_expiry(const Play& play, const Grant& held) {
  // A contender that asks slightly too early may prolong the lock, or start to wait.
  const Duration margin = play.ttl() / 4;
  const TimePoint end = held.answered_at + play.ttl();
  play.wait_until(std::max(end, held.valid_until.value_or(end)) + margin);
}

/// `not-applicable`, for a lock that did not expire although the play needs it to.
Verdict not_run_out(std::string_view meanwhile) {
  return {HazardOutcome::not_applicable,
          fmt::format("the lock did not expire: {}, and nobody else got it", meanwhile)};
}

// Plays in which a lock may expire while its holder works. The holder reads the protected counter;
// a fault delays it; a second client is granted the lock and writes; then the holder goes on.

/// The differences between these plays.
struct Lapse {
  std::string_view what{};  ///< "the holder was cut off"
  /// The fault, and its end at least two TTLs after the grant. Unset: the work just takes long.
  std::function<void(Actor&)> begin{}, end{};
  /// The second client asks right after the grant; otherwise only after the lock has expired.
  bool contends = false;
  /// Minimum time that the second client keeps trying; leader election can be slow.
  Duration patience{};
  /// The holder looks at its lease before it writes. Otherwise it writes anyway: it looked before
  /// the fault, or not at all.
  bool looks = false;
  bool fenced = false;       ///< the counter checks fencing numbers
  bool behind_line = false;  ///< the holder connects through proxies
  bool stalls = false;       ///< nothing renews the holder's lock
  /// The cluster members that each client connects to; empty: all.
  std::vector<std::size_t> holders_members{}, seconds_members{};
};

/// Whether a client keeps its lock as long as it lives and reaches the store.
bool is_renewed(const Traits& traits) {
  return traits.renews || (traits.expiry == Expiry::session && !traits.ends_with_connection);
}

/// The verdict after the holder's late write.
Verdict verdict_of_write(Play& play, Actor& holder, const Grant& held, const Grant& next,
                         bool rejected, std::string_view what) {
  const loadgen::WriteResult written = holder.write(held);
  const std::uint64_t lost = play.accepted_writes() - play.counter();
  play.note("lost_updates", static_cast<std::int64_t>(lost));
  if (lost > 0) {
    return {HazardOutcome::lost_update,
            fmt::format("{}: it wrote a value based on an old read, and the second client's update "
                        "was lost",
                        what)};
  }
  if (rejected) {
    return {HazardOutcome::unavailable,
            fmt::format("the counter rejects the rightful holder: its fencing number is {}, the "
                        "first holder's was {}",
                        next.fencing.value_or(0), held.fencing.value_or(0))};
  }
  if (written != loadgen::WriteResult::rejected_stale) {
    throw Failure("the late write was accepted, but no update was lost");
  }
  return {HazardOutcome::safe, "the counter rejected the late write by its fencing number"};
}

/// `not-applicable` if the lock did not expire, so the play cannot answer its question. `safe` if
/// renewal kept it, or if the counter rejected the late write. If another client got the lock:
/// `known-loss` or `double-grant`, by the holder's belief at that time; `lost-update` for a holder
/// that does not look.
Verdict play_lapse(Play& play, const Lapse& lapse) {
  Actor& holder = play.client("holder", {.renewal_stalls = lapse.stalls,
                                         .behind_line = lapse.behind_line,
                                         .checks_fencing = lapse.fenced,
                                         .members = lapse.holders_members});
  // Polls, so that its grant shows when the store gave up the lock. Strategies that queue are woken
  // instead.
  Actor& second = play.client(
      "second",
      {.checks_fencing = lapse.fenced, .wait = "poll:1ms", .members = lapse.seconds_members});
  const Grant held = holder.must_acquire();
  holder.read(held);
  if (lapse.begin) lapse.begin(holder);
  if (lapse.contends) {
    require_in_time("the second client's turn came", held.answered_at, PlayClock::now(),
                    play.ttl() / 2);
  } else {
    await_expiry(play, held);
  }
  const Duration patience = std::max(play.stuck_after(), lapse.patience);
  const Grant next = acquire_at_last(second, patience, patience);
  play.note("second_granted", next.granted());
  Verdict verdict;
  if (next.granted() && lapse.looks) {
    verdict = verdict_of_belief(play, holder, held, next, lapse.what);
  }
  bool rejected = false;
  if (next.granted() && !lapse.looks) {
    second.read(next);
    rejected = second.write(next) != loadgen::WriteResult::accepted;
  }
  if (lapse.end) {
    play.wait_until(held.answered_at + 2 * play.ttl());
    lapse.end(holder);
  }
  if (!next.granted()) {
    if (!lapse.begin && is_renewed(play.traits())) {
      return {HazardOutcome::safe, "renewal kept the lock while its holder used it"};
    }
    return not_run_out(lapse.what);
  }
  if (lapse.looks) return verdict;
  return verdict_of_write(play, holder, held, next, rejected, lapse.what);
}

/// Stops the holder between its look at the lease and its write.
Verdict pause(Play& play, Lapse lapse) {
  lapse.what = "the holder was paused";
  lapse.begin = [](Actor& holder) { holder.stop(); };
  lapse.end = [](Actor& holder) { holder.resume(); };
  return play_lapse(play, lapse);
}

Verdict partition(Play& play, Lapse lapse) {
  lapse.what = "the holder was cut off";
  lapse.begin = [&play](Actor& holder) {
    for (const auto& line : holder.lines()) line->hold();
    play.record_fault("the network cuts the holder off from the store");
  };
  lapse.end = [&play](Actor& holder) {
    for (const auto& line : holder.lines()) line->heal();
    play.record_fault("the holder's connection is restored");
  };
  lapse.behind_line = true;
  return play_lapse(play, lapse);
}

/// The holder works on, on its own thread, while nothing else in its process runs.
Verdict stalled_renewal(Play& play) {
  return play_lapse(
      play,
      {.what = "only the holder's renewal stood still",
       .begin = [&play](Actor&) { play.record_fault("what renews for the holder stands still"); },
       .contends = true,
       .looks = true,
       .stalls = true});
}

/// The holder is connected to one member only, the second client to the others.
Verdict isolation(Play& play, bool leads, Lapse lapse) {
  const std::size_t member = play.store().member(leads);
  lapse.what = leads ? "the leader, to which the holder is connected, was cut off"
                     : "the member to which the holder is connected was cut off";
  lapse.begin = [&play, member, leads](Actor&) {
    play.store().isolate(member);
    play.record_fault(leads ? "the network cuts the leader off from the other members"
                            : "the network cuts one member off from the others");
  };
  lapse.end = [&play](Actor&) {
    play.store().reunite();
    play.record_fault("the members reach each other again");
  };
  lapse.patience = std::chrono::seconds(30);
  lapse.holders_members = {member};
  lapse.seconds_members = play.store().others_than(member);
  return play_lapse(play, lapse);
}

constexpr std::string_view kTooLong = "the work took longer than the TTL";

Verdict runaway(Play& play, const ActorSettings& of_holder) {
  const Grant held = play.client("holder", of_holder).must_acquire();
  const Grant next = play.client("contender").acquire(play.stuck_after());
  return verdict_of_return(play, next, held.answered_at);
}

/// Stops the holder until its lock has expired and a second client has it, with a long TTL. Before
/// that, the holder's clock is set back, so that its lock still looks valid to it.
Verdict release_late(Play& play, Duration clock_behind) {
  Actor& holder = play.client("holder");
  const Grant held = holder.must_acquire();
  if (clock_behind > Duration::zero()) holder.shift_clock(-clock_behind);
  Actor& successor = play.client("second");
  const Duration wait = play.stuck_after();
  holder.stop();
  await_expiry(play, held);
  play.set_ttl(kLongTtl);
  const Grant second = successor.acquire(wait);
  holder.resume();
  if (!second.granted()) return not_run_out("its holder was stopped");
  require_late_release(holder, held, holder.release(held));
  return verdict_of_release(play, "second");
}

/// Stalls a release before each of its commands in turn; one of these stalls is between check and
/// delete.
Verdict release_race(Play& play) {
  // Longer than the stall, so that the client does not miss the nodes' answers; shorter than the
  // play's wait for the client.
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

/// The second client does not renew, so its lock should last one TTL. If it lasts much longer, the
/// first client prolonged it.
Verdict foreign_renewal(Play& play) {
  Actor& holder = play.client("holder");
  Actor& second = play.client("second", {.renews = false});
  Actor& third = play.client("third");
  const Grant held = holder.must_acquire();
  holder.stop();
  await_expiry(play, held);
  const Grant next = second.acquire(play.stuck_after());
  holder.resume();
  if (!next.granted()) return not_run_out("its holder was stopped");
  const Duration ttl = play.ttl();
  // A renewal timer continues by itself.
  if (!play.traits().renews) {
    const RenewOutcome renewed = holder.renew(held, 4 * ttl);
    if (renewed == RenewOutcome::failed || renewed == RenewOutcome::unsupported) {
      throw Failure("the first holder's renewal did not reach the store");
    }
  }
  // Not earlier: a client that asks may itself prolong the lock.
  play.wait_until(next.answered_at + ttl * 3 / 2);
  const Grant last = third.acquire(5 * ttl);
  const Duration lasted = last.answered_at - next.answered_at;
  play.note("second_lasted_seconds", lasted);
  // By observation, the third client first watches for a TTL.
  const Duration watched = play.traits().observed ? ttl * 3 / 2 : Duration::zero();
  if (last.granted() && lasted < ttl * 5 / 2 + play.traits().kept_longer + watched) {
    return {HazardOutcome::safe, "the second client's lock ended as it should, " +
                                     milliseconds(lasted) + " after the grant"};
  }
  return {HazardOutcome::foreign_renewal,
          "the first holder's renewal prolonged the second client's lock: its TTL was " +
              milliseconds(ttl) + ", it lasted " + milliseconds(lasted)};
}

/// The store ends the session of a holder that is alive, connected and sends keep-alives.
Verdict session_expiry(Play& play) {
  Actor& holder = play.client("holder", {.checks_fencing = true});
  Actor& successor = play.client("successor", {.checks_fencing = true});
  const Grant held = holder.must_acquire();
  holder.read(held);
  // end_session() returns only when the end is visible, which may be later than the end itself.
  const TimePoint lost_at = PlayClock::now();
  play.store().end_session(play.key());
  const TimePoint ended_at = PlayClock::now();
  play.record_fault("the store ended the holder's session");
  const Grant next = successor.acquire(play.stuck_after());
  if (!next.granted()) {
    return {HazardOutcome::stuck, "the session ended, but its lock did not"};
  }
  play.note("successor_waited_seconds", next.answered_at - ended_at);
  successor.read(next);
  successor.write(next);
  const loadgen::WriteResult written = holder.write(held);
  const Belief belief = holder.belief(held, 2 * play.ttl());
  play.note("holder_still_believes", belief.valid);
  if (belief.until) play.note("belief_gap_seconds", *belief.until - lost_at);
  const std::uint64_t lost = play.accepted_writes() - play.counter();
  play.note("lost_updates", static_cast<std::int64_t>(lost));
  if (written == loadgen::WriteResult::rejected_stale) {
    return {HazardOutcome::safe,
            fmt::format("the next client got the lock after {}, and the counter rejected the first "
                        "client's late write by its fencing number",
                        milliseconds(std::max(next.answered_at - ended_at, Duration::zero())))};
  }
  return {HazardOutcome::lost_update,
          "the first client wrote although another client already held the lock"};
}

const ScenarioRegistration stalls_scenarios({
    {.name = "pause-holding",
     .question = "The holder is paused for longer than the TTL: does its stale write get through?",
     .needs = Scenario::Needs::expiry_despite_contenders,
     .quick = true,
     .play = [](Play& play) { return pause(play, {.contends = true}); }},
    {.name = "pause-holding-late",
     .question = "As pause-holding, but the successor first asks after the TTL: is an update lost?",
     .like = "pause-holding",
     .needs = Scenario::Needs::expiry,
     .play = [](Play& play) { return pause(play, {}); }},
    {.name = "pause-holding-fenced",
     .question = "As pause-holding, but the resource checks fencing numbers: is the stale write "
                 "rejected?",
     .needs = Scenario::Needs::expiry,
     .quick = true,
     .play = [](Play& play) { return pause(play, {.fenced = true}); }},
    {.name = "partition-holder",
     .question =
         "The network cuts the holder off for two TTLs: does it know before another enters?",
     .needs = Scenario::Needs::expiry_despite_contenders,
     .exempts = only_with_connections,
     .play = [](Play& play) { return partition(play, {.contends = true, .looks = true}); }},
    {.name = "partition-holder-late",
     .question = "As partition-holder, but the contender first asks after the TTL: does it know?",
     .like = "partition-holder",
     .needs = Scenario::Needs::expiry,
     .exempts = only_with_connections,
     .play = [](Play& play) { return partition(play, {.looks = true}); }},
    {.name = "partition-holder-fenced",
     .question =
         "A holder that is cut off writes to a resource that checks numbers: is it rejected?",
     .like = "pause-holding-fenced",
     .needs = Scenario::Needs::expiry,
     .exempts = only_with_connections,
     .play = [](Play& play) { return partition(play, {.fenced = true}); }},
    {.name = "member-isolated",
     .question = "The holder's member is cut off from the others: does the holder know in time?",
     .setup = Setup::split,
     .needs = Scenario::Needs::expiry,
     .exempts = only_for_clusters,
     .play = [](Play& play) { return isolation(play, /*leads=*/false, {.looks = true}); }},
    {.name = "leader-isolated",
     .question = "The leader is cut off with the holder's client: does the holder know in time?",
     .setup = Setup::split,
     .needs = Scenario::Needs::expiry,
     .exempts = only_for_clusters,
     .play = [](Play& play) { return isolation(play, /*leads=*/true, {.looks = true}); }},
    {.name = "member-isolated-fenced",
     .question = "As member-isolated, but the resource checks numbers: is the late write rejected?",
     .setup = Setup::split,
     .needs = Scenario::Needs::expiry,
     .exempts = only_for_clusters,
     .play = [](Play& play) { return isolation(play, /*leads=*/false, {.fenced = true}); }},
    {.name = "overrun-holding",
     .question = "The work takes longer than the TTL: does the holder know before another enters?",
     .needs = Scenario::Needs::expiry_despite_contenders,
     .quick = true,
     .play =
         [](Play& play) {
           return play_lapse(play, {.what = kTooLong, .contends = true, .looks = true});
         }},
    {.name = "overrun-holding-late",
     .question = "As overrun-holding, but the contender first asks after the TTL: does it know?",
     .like = "overrun-holding",
     .needs = Scenario::Needs::expiry,
     .play = [](Play& play) { return play_lapse(play, {.what = kTooLong, .looks = true}); }},
    {.name = "overrun-holding-fenced",
     .question =
         "The holder writes after its TTL to a resource that checks numbers: is it rejected?",
     .needs = Scenario::Needs::expiry,
     .play = [](Play& play) { return play_lapse(play, {.what = kTooLong, .fenced = true}); }},
    {.name = "renewal-stalled",
     .question = "Only the renewal of a working holder stands still: does it know in time?",
     .needs = Scenario::Needs::expiry,
     .quick = true,
     .exempts = only_if([](const Descriptor& one) { return is_renewed(one.traits); },
                        "nothing renews it: see overrun-holding"),
     .play = stalled_renewal},
    {.name = "runaway-holder",
     .question = "The holder is alive but its work never ends: does the lock become free?",
     .default_outcome = HazardOutcome::recovers,
     .play = [](Play& play) { return runaway(play, {}); }},
    {.name = "runaway-holder-capped",
     .question = "As runaway-holder, with --renew-cap: does the lock become free?",
     .default_outcome = HazardOutcome::recovers,
     .exempts = only_if([](const Descriptor& one) { return one.traits.renews; },
                        "it has no renewal timer"),
     .play = [](Play& play) { return runaway(play, {.renew_cap = 2 * play.ttl()}); }},
    {.name = "late-release",
     .question = "The first holder releases after its lock expired: does it free the second "
                 "client's lock?",
     .needs = Scenario::Needs::expiry,
     .quick = true,
     .play = [](Play& play) { return release_late(play, {}); }},
    {.name = "holder-clock-behind",
     .question = "The holder's clock is behind and it releases late: does it free another's lock?",
     .needs = Scenario::Needs::expiry,
     .exempts =
         only_if([](const Descriptor& one) { return one.traits.release_check != OwnerCheck::none; },
                 "its release checks nothing, not even a clock: see late-release"),
     .play = [](Play& play) { return release_late(play, std::chrono::hours(1)); }},
    {.name = "release-race",
     .question =
         "A client stalls between check and delete of its release: does it free another's lock?",
     .needs = Scenario::Needs::expiry,
     .quick = true,
     .play = release_race},
    {.name = "foreign-renewal",
     .question = "The first holder renews after its lock expired: does it prolong the second "
                 "client's lock?",
     .needs = Scenario::Needs::expiry,
     .quick = true,
     .exempts = only_if([](const Descriptor& one) { return one.traits.renew_check.has_value(); },
                        "its validity cannot be prolonged by a client"),
     .play = foreign_renewal},
    {.name = "session-expiry",
     .question = "The store ends the session of a working client: is its late write rejected?",
     .by_key = true,
     .quick = true,
     .exempts = only_if([](const Descriptor& one) { return one.traits.expiry == Expiry::session; },
                        "it does not use a session"),
     .play = session_expiry},
});

}  // namespace
}  // namespace lockbench::hazards
