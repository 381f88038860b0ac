#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// While a contender keeps asking.
Verdict dies(Play& play, Actor& holder, const std::function<void()>& die) {
  Actor& contender = play.client("contender");
  holder.hold();
  contender.ask(play.patience() + play.ttl());
  contender.await_waiting();
  const TimePoint died_at = std::chrono::steady_clock::now();
  die();
  return verdict_of_return(play, contender.answer(), died_at);
}

Verdict crash_holding(Play& play) {
  Actor& holder = play.client("holder");
  return dies(play, holder, [&] { holder.kill(); });
}

Verdict host_crash(Play& play) {
  Actor& holder = play.client("holder", {.behind_line = true});
  return dies(play, holder, [&] {
    for (const auto& line : holder.lines()) {
      if (const auto gone = line->vanish(); !gone) throw StageFailure(gone.error());
    }
    play.tell("the holder's host vanishes: nothing more comes from there, not even the end");
    holder.kill();
  });
}

/// Long enough for TCP, which counts in seconds.
Verdict host_crash_keepalive(Play& play) {
  constexpr std::chrono::seconds kSilence{3};
  play.ask_for_ttl(kSilence);
  play.stage().limit(Limit::silent_client, kSilence);
  play.tell("the store is to ask clients that are silent for a second whether they are there");
  return host_crash(play);
}

/// Bounds only how long what was sent may stay unacknowledged, and to a client that holds a lock
/// nothing is sent.
Verdict host_crash_user_timeout(Play& play) {
  constexpr std::chrono::seconds kUnacknowledged{1};
  play.ask_for_ttl(kUnacknowledged);
  play.stage().limit(Limit::deaf_client, kUnacknowledged);
  play.tell("the store is to give up clients that acknowledge nothing for a second");
  return host_crash(play);
}

const ScenarioRegistration crash({
    .name = "crash-holding",
    .question = "The holder dies inside its section: does the lock come back?",
    .unless_declared = HazardOutcome::recovers,
    .quick = true,
    .play = crash_holding,
});

const ScenarioRegistration host({
    .name = "host-crash",
    .question = "The holder's host vanishes with its connections open: does the lock come back?",
    .unless_declared = HazardOutcome::recovers,
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.backend == "local") return "it has no connections";
      return std::nullopt;
    },
    .play = host_crash,
});

std::optional<std::string> unless_it_is_the_connections(const Descriptor& strategy) {
  const bool lasts = strategy.traits.expiry == Expiry::session;
  if (lasts && strategy.backend == "postgres") return std::nullopt;
  return "its lock does not last as long as a connection does";
}

const ScenarioRegistration keepalive({
    .name = "host-crash-keepalive",
    .question = "The same, and the store's TCP asks silent clients: does the lock come back?",
    .unless_declared = HazardOutcome::recovers,
    .ground = Ground::durable,
    .exempts = unless_it_is_the_connections,
    .play = host_crash_keepalive,
});

const ScenarioRegistration user_timeout({
    .name = "host-crash-user-timeout",
    .question = "The same with tcp_user_timeout, and no questions: does the lock come back?",
    .unless_declared = HazardOutcome::recovers,
    .ground = Ground::durable,
    .exempts = unless_it_is_the_connections,
    .play = host_crash_user_timeout,
});

}  // namespace
}  // namespace lockbench::hazards
