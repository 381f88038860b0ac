#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

// No fault: a control must fail these, or the other plays would prove nothing.

Verdict several_processes(Play& play) {
  play.set_ttl(kLongTtl);
  play.client("holder").must_acquire();
  return verdict_of_two(play, play.client("other").acquire(), "the clients are in two processes");
}

Verdict contention(Play& play) {
  play.set_ttl(kLongTtl);
  Actor& one = play.client("one");
  Actor& other = play.client("other");
  const Grant first = one.must_acquire();
  one.read(first);
  const Grant second = other.acquire();
  require_answer(second);
  if (second.granted()) {
    other.read(second);
    other.write(second);
  }
  one.write(first);
  if (play.accepted_writes() > play.counter()) {
    return {HazardOutcome::lost_update,
            "both clients read the same value, and one update was lost"};
  }
  return {HazardOutcome::safe, "the other client had to wait, and no update was lost"};
}

const ScenarioRegistration several_processes_scenario({
    .name = "several-processes",
    .question = "Two clients in two processes, without a fault: do both hold the lock?",
    .for_controls = true,
    .exempts = only_if([](const Descriptor& one) { return one.traits.promises_exclusion; },
                       "a control: it grants the lock to everybody"),
    .play = several_processes,
});

const ScenarioRegistration contention_scenario({
    .name = "contention",
    .question = "Two clients contend for the lock, without a fault: is an update lost?",
    .quick = true,
    .for_controls = true,
    .exempts = only_if([](const Descriptor& one) { return !one.traits.one_process; },
                       "it works within one process only: see several-processes"),
    .play = contention,
});

}  // namespace
}  // namespace lockbench::hazards
