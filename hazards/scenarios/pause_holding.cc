#include <fmt/format.h>

#include <thread>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// Stops the holder between reading and writing the counter, until a successor has written.
Verdict pause(Play& play, bool checks_fencing) {
  Actor& holder = play.client("holder", {.checks_fencing = checks_fencing});
  Actor& successor = play.client("successor", {.checks_fencing = checks_fencing});
  const Grant held = holder.must_acquire();
  holder.read(held);
  holder.stop();
  const Grant next = successor.acquire(play.stuck_after());
  require_answer(next);
  play.note("successor_granted", next.granted());
  bool was_rejected = false;
  if (next.granted()) {
    successor.read(next);
    was_rejected = successor.write(next) != loadgen::WriteResult::accepted;
    successor.release(next);
  }
  std::this_thread::sleep_until(held.answered_at + 2 * play.ttl());
  holder.resume();
  const loadgen::WriteResult written = holder.write(held);
  holder.release(held);

  const std::uint64_t lost = play.accepted_writes() - play.counter();
  play.note("lost_updates", static_cast<std::int64_t>(lost));
  if (lost > 0) {
    return {HazardOutcome::lost_update,
            "the holder resumed and wrote a value based on an old read: the successor's update "
            "was lost"};
  }
  if (was_rejected) {
    return {HazardOutcome::unavailable,
            fmt::format("the counter rejects the rightful holder: its fencing number is {}, the "
                        "first holder's was {}",
                        next.fencing.value_or(0), held.fencing.value_or(0))};
  }
  if (written == loadgen::WriteResult::rejected_stale) {
    return {HazardOutcome::safe, "the counter rejected the late write by its fencing number"};
  }
  return {HazardOutcome::safe,
          fmt::format("no update was lost; the successor {}",
                      next.granted() ? "got the lock" : "had to wait for the stopped holder")};
}

const ScenarioRegistration plain({
    .name = "pause-holding",
    .question = "The holder is paused for longer than the TTL: does its stale write get through?",
    .quick = true,
    .dose = Dose::stall,
    .play = [](Play& play) { return pause(play, false); },
});

const ScenarioRegistration fenced({
    .name = "pause-holding-fenced",
    .question =
        "As pause-holding, but the resource checks fencing numbers: is the stale write rejected?",
    .quick = true,
    .play = [](Play& play) { return pause(play, true); },
});

}  // namespace
}  // namespace lockbench::hazards
