#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

// No fault at all: what must go wrong without a lock, so that the plays above can be believed.

Verdict several_processes(Play& play) {
  play.ask_for_ttl(kLongTtl);
  play.client("holder").hold();
  return verdict_of_two(play, play.client("other").acquire(), "the clients live in two processes");
}

Verdict contention(Play& play) {
  play.ask_for_ttl(kLongTtl);
  Actor& one = play.client("one");
  Actor& other = play.client("other");
  const Grant first = one.hold();
  one.read(first);
  const Grant second = other.acquire();
  need_answer(second);
  if (second.granted()) {
    other.read(second);
    other.write(second);
  }
  one.write(first);
  if (play.accepted_writes() > play.counter()) {
    return {HazardOutcome::lost_update, "both read the same number, and one update is gone"};
  }
  return {HazardOutcome::safe, "the other had to wait, and no update was lost"};
}

const ScenarioRegistration processes({
    .name = "several-processes",
    .question = "Clients live in two processes, without any fault: do two hold the lock?",
    .for_controls = true,
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.traits.promises_exclusion) return std::nullopt;
      return "a control: it lets everybody in";
    },
    .play = several_processes,
});

const ScenarioRegistration crowd({
    .name = "contention",
    .question = "Two clients want the lock, without any fault: is an update lost?",
    .quick = true,
    .for_controls = true,
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (!strategy.traits.one_process) return std::nullopt;
      return "it excludes within one process only: see several-processes";
    },
    .play = contention,
});

}  // namespace
}  // namespace lockbench::hazards
