#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// The holder dies while a contender waits.
Verdict crash(Play& play, Actor& holder, const std::function<void()>& die) {
  Actor& contender = play.client("contender");
  holder.must_acquire();
  contender.start_acquire(play.stuck_after() + play.ttl());
  contender.await_waiting();
  const TimePoint died_at = BootClock::now();
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

const ScenarioRegistration crash_holding_scenario({
    .name = "crash-holding",
    .question = "The holder process dies inside its section: does the lock become free?",
    .default_outcome = HazardOutcome::recovers,
    .quick = true,
    .play = crash_holding,
});

const ScenarioRegistration host_crash_scenario({
    .name = "host-crash",
    .question = "The holder's host vanishes with its connections open: does the lock become free?",
    .default_outcome = HazardOutcome::recovers,
    .exempts = only_with_connections,
    .play = host_crash,
});

const auto only_for_connection_locks =
    only_if([](const Descriptor& one) { return one.traits.ends_with_connection; },
            "the lock does not depend on a connection");

const ScenarioRegistration host_crash_keepalive_scenario({
    .name = "host-crash-keepalive",
    .question = "As host-crash, with TCP keepalives at the server: does the lock become free?",
    .default_outcome = HazardOutcome::recovers,
    .setup = Setup::durable,
    .exempts = only_for_connection_locks,
    .play = host_crash_keepalive,
});

const ScenarioRegistration host_crash_user_timeout_scenario({
    .name = "host-crash-user-timeout",
    .question = "As host-crash, with tcp_user_timeout only: does the lock become free?",
    .default_outcome = HazardOutcome::recovers,
    .setup = Setup::durable,
    .exempts = only_for_connection_locks,
    .play = host_crash_user_timeout,
});

}  // namespace
}  // namespace lockbench::hazards
