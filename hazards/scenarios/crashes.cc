#include <fmt/format.h>

#include <algorithm>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// The holder dies while a contender waits.
Verdict crash(Play& play, Actor& holder, const std::function<void()>& die) {
  Actor& contender = play.client("contender");
  holder.must_acquire();
  contender.start_acquire(play.stuck_after() + play.ttl());
  contender.await_waiting();
  const TimePoint died_at = PlayClock::now();
  die();
  return verdict_of_return(play, contender.finish_acquire(), died_at);
}

Verdict crash_holding(Play& play) {
  Actor& holder = play.client("holder");
  return crash(play, holder, [&] { holder.kill(); });
}

Verdict host_crash(Play& play) {
  Actor& holder = play.client("holder", {.behind_line = true});
  return crash(play, holder, [&] {
    for (const auto& line : holder.lines()) {
      if (const auto gone = line->vanish(); !gone) throw Failure(gone.error());
    }
    play.record_fault("the holder's host vanishes: its connections stay open and silent");
    holder.kill();
  });
}

/// TCP keepalive counts in whole seconds.
Verdict host_crash_keepalive(Play& play) {
  constexpr std::chrono::seconds kSilence{3};
  play.set_ttl(kSilence);
  play.store().limit(Limit::silent_client, kSilence);
  play.record_fault("the store sends TCP keepalives to clients that are silent for a second");
  return host_crash(play);
}

/// tcp_user_timeout bounds only how long sent data may stay unacknowledged. The server sends
/// nothing to a client that just holds a lock.
Verdict host_crash_user_timeout(Play& play) {
  constexpr std::chrono::seconds kUnacknowledged{1};
  play.set_ttl(kUnacknowledged);
  play.store().limit(Limit::unacknowledged, kUnacknowledged);
  play.record_fault("the store drops clients that acknowledge no data for a second");
  return host_crash(play);
}

const auto only_for_connection_locks =
    only_if([](const Descriptor& one) { return one.traits.ends_with_connection; },
            "the lock does not depend on a connection");

std::optional<std::string> only_with_user_timeout(const Descriptor& strategy) {
  if (auto reason = only_for_connection_locks(strategy)) return reason;
  if (store_traits(strategy.backend).user_timeout) return std::nullopt;
  return "its server has no tcp_user_timeout";
}

/// A request of which a client dies.
struct Fatal {
  std::function<void()> begin;  ///< only sends it
  std::function<void()> finish;
};

/// The client dies after the command `place` of `places`. On a quorum, answers come in any order,
/// some after the result, so it dies before the next command instead.
void die_after(Play& play, Actor& victim, int place, int places, const Fatal& request) {
  const bool quorum = play.traits().nodes > 1;
  if (quorum && place == places) {
    request.finish();
    victim.kill();
    return;
  }
  if (quorum) {
    victim.arm(CommandFault::Action::die, CommandFault::Place::before, place + 1);
  } else {
    victim.arm(CommandFault::Action::die, CommandFault::Place::after, place);
  }
  request.begin();
  victim.await_death();
}

/// When a lock came back after a death.
struct Return {
  Grant grant;
  TimePoint since{};
};

/// Kills a client after each command in turn. `strike` does it after the command `place`, and sets
/// how many there are. The slowest return counts, or the first lock that stays taken.
Verdict after_each_command(Play& play,
                           const std::function<Return(int place, int& places)>& strike) {
  Verdict slowest{HazardOutcome::recovers, "it sends no command"};
  Duration longest{};
  for (int place = 1, places = 1; place <= places; ++place) {
    const Return back = strike(place, places);
    if (places == 0) break;
    Verdict verdict = verdict_of_return(play, back.grant, back.since);
    verdict.reason += fmt::format(" (killed after command {} of {})", place, places);
    play.note("commands", std::int64_t{places});
    if (verdict.outcome == HazardOutcome::stuck) return verdict;
    if (const Duration took = back.grant.answered_at - back.since; took >= longest) {
      longest = took;
      slowest = std::move(verdict);
    }
    play.note("recovery_seconds", longest);
  }
  return slowest;
}

/// Asks until the lock is free, and leaves it free.
Grant acquire_and_release(Actor& client, Duration wait) {
  Grant grant = client.acquire(wait);
  if (grant.granted()) client.release(grant);
  return grant;
}

/// One of the commands is the first that changes the lock.
Verdict crash_mid_acquire(Play& play) {
  Actor& contender = play.client("contender");
  return after_each_command(play, [&](int place, int& places) -> Return {
    Actor& victim = play.client("victim");
    victim.warm_up();
    places = victim.acquire_commands();
    if (places == 0) return {};
    play.change_key();
    contender.release(
        contender.must_acquire());  // creates things that exist once per lock: a parent node
    die_after(play, victim, place, places,
              {.begin = [&] { victim.start_acquire(std::chrono::seconds(5)); },
               .finish = [&] { victim.must_acquire(); }});
    const TimePoint died_at = PlayClock::now();
    return {acquire_and_release(contender, play.stuck_after()), died_at};
  });
}

/// A contender waits meanwhile: the release may have freed the lock without telling it.
Verdict crash_mid_release(Play& play) {
  return after_each_command(play, [&](int place, int& places) -> Return {
    Actor& holder = play.client("holder", {.wait = "notify"});
    Actor& contender = play.client("contender", {.wait = "notify"});
    holder.warm_up();
    contender.warm_up();
    places = holder.release_commands();
    if (places == 0) return {};
    play.change_key();
    const Grant held = holder.must_acquire();
    contender.start_acquire(play.stuck_after() + play.ttl());
    contender.await_waiting();
    const TimePoint since = PlayClock::now();
    die_after(play, holder, place, places,
              {.begin = [&] { holder.start_release(held); },
               .finish = [&] { require_release(holder.release(held)); }});
    return {contender.finish_acquire(), since};
  });
}

/// One of the commands may leave the lock without an end.
Verdict crash_mid_renew(Play& play) {
  Actor& contender = play.client("contender");
  return after_each_command(play, [&](int place, int& places) -> Return {
    Actor& holder = play.client("holder");
    holder.warm_up();
    places = holder.renew_commands();
    if (places == 0) return {};
    play.change_key();
    const Grant held = holder.must_acquire();
    die_after(play, holder, place, places,
              {.begin = [&] { holder.start_renew(held, play.ttl()); },
               .finish = [&] { holder.renew(held, play.ttl()); }});
    const TimePoint died_at = PlayClock::now();
    return {acquire_and_release(contender, play.stuck_after()), died_at};
  });
}

/// A holder and a waiter with their own lock.
struct Pair {
  Actor* holder = nullptr;
  Actor* waiter = nullptr;
  Grant held{};
  TimePoint valid_until{};  ///< end of the lease, as the holder knew it when it was killed
};

/// Kills holders at equal steps through the second renewal period of their sessions. The delay
/// counts from the session's end at the store, which is not earlier than the end known to its
/// holder.
Verdict lock_delay(Play& play) {
  constexpr int kPhases = 4;
  const Duration promised = StrategyOptions().lock_delay;
  std::vector<Pair> pairs;
  for (int phase = 0; phase < kPhases; ++phase) {
    play.change_key();
    Pair& pair = pairs.emplace_back(Pair{&play.client(fmt::format("holder {}", phase + 1)),
                                         &play.client(fmt::format("waiter {}", phase + 1))});
    pair.held = pair.holder->must_acquire();
    pair.waiter->start_acquire(play.stuck_after() + promised);
    pair.waiter->await_waiting();
  }
  const Duration period = RenewalTiming().next(play.ttl());
  for (int phase = 0; phase < kPhases; ++phase) {
    Pair& pair = pairs[static_cast<std::size_t>(phase)];
    play.wait_until(pair.held.answered_at + period + phase * period / kPhases);
    pair.valid_until = pair.holder->belief(pair.held).until.value_or(pair.held.answered_at);
    pair.holder->kill();
  }
  Duration shortest = Duration::max();
  for (const Pair& pair : pairs) {
    const Grant next = pair.waiter->finish_acquire();
    if (!next.granted()) return {HazardOutcome::stuck, "no client got the lock of a dead holder"};
    shortest = std::min(shortest, next.answered_at - pair.valid_until);
  }
  play.note("shortest_delay_seconds", shortest);
  const std::string what = fmt::format(
      "the next client got the lock {} after the session's end; "
      "the promised delay is {}",
      milliseconds(shortest), milliseconds(promised));
  if (shortest >= promised) return {HazardOutcome::safe, what};
  return {HazardOutcome::double_grant,
          what + ": a write that the dead holder sent in time may still arrive"};
}

const ScenarioRegistration crashes_scenarios({
    {.name = "crash-holding",
     .question = "The holder process dies inside its section: does the lock become free?",
     .default_outcome = HazardOutcome::recovers,
     .quick = true,
     .play = crash_holding},
    {.name = "host-crash",
     .question = "The holder's host vanishes with its connections open: does the lock become free?",
     .default_outcome = HazardOutcome::recovers,
     .exempts = only_with_connections,
     .play = host_crash},
    {.name = "host-crash-keepalive",
     .question = "As host-crash, with TCP keepalives at the server: does the lock become free?",
     .default_outcome = HazardOutcome::recovers,
     .setup = Setup::durable,
     .exempts = only_for_connection_locks,
     .play = host_crash_keepalive},
    {.name = "host-crash-user-timeout",
     .question = "As host-crash, with tcp_user_timeout only: does the lock become free?",
     .default_outcome = HazardOutcome::recovers,
     .setup = Setup::durable,
     .exempts = only_with_user_timeout,
     .play = host_crash_user_timeout},
    {.name = "crash-mid-acquire",
     .question =
         "A client dies between the commands of its acquisition: does the lock become free?",
     .default_outcome = HazardOutcome::recovers,
     .quick = true,
     .play = crash_mid_acquire},
    {.name = "crash-mid-release",
     .question = "A client dies between the commands of its release: does the lock become free?",
     .default_outcome = HazardOutcome::recovers,
     .play = crash_mid_release},
    {.name = "crash-mid-renew",
     .question = "A client dies between the commands of a renewal: does the lock become free?",
     .default_outcome = HazardOutcome::recovers,
     .exempts = only_if([](const Descriptor& one) { return one.traits.renew_check.has_value(); },
                        "its validity cannot be prolonged by a client"),
     .play = crash_mid_renew},
    {.name = "lock-delay",
     .question =
         "A holder dies at any time after its last renewal: is the lock-delay always kept in full?",
     .exempts = only_if([](const Descriptor& one) { return one.traits.lock_delay; },
                        "it promises no delay after a failure"),
     .play = lock_delay},
});

}  // namespace
}  // namespace lockbench::hazards
