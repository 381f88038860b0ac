#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// While a contender keeps asking.
Verdict dies(Play& play, Actor& holder, const std::function<void()>& die) {
  Actor& contender = play.client("contender");
  holder.hold();
  contender.ask(play.patience() + play.ttl());
  contender.await_waiting();
  die();
  const TimePoint died_at = std::chrono::steady_clock::now();
  return verdict_of_return(play, contender.answer(), died_at);
}

Verdict crash_holding(Play& play) {
  Actor& holder = play.client("holder");
  return dies(play, holder, [&] { holder.kill(); });
}

Verdict host_crash(Play& play) {
  Actor& holder = play.client("holder", {.behind_line = true});
  return dies(play, holder, [&] {
    holder.line().black_hole();
    play.tell("the holder's host vanishes: nothing more comes from there, not even the end");
    holder.kill();
  });
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

}  // namespace
}  // namespace lockbench::hazards
