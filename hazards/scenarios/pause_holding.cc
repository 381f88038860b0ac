#include <fmt/format.h>

#include <thread>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// Stopped between reading and writing the protected counter, until a successor has worked.
Verdict pause(Play& play, bool checks_fencing) {
  Actor& holder = play.client("holder", {.checks_fencing = checks_fencing});
  Actor& successor = play.client("successor", {.checks_fencing = checks_fencing});
  const Grant held = holder.hold();
  holder.read(held);
  holder.stop();
  const Grant next = successor.acquire(play.patience());
  need_answer(next);
  play.note("successor_granted", next.granted());
  bool turned_away = false;
  if (next.granted()) {
    successor.read(next);
    turned_away = successor.write(next) != loadgen::WriteResult::accepted;
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
            "the holder woke up and wrote what it had read before its successor worked: the "
            "successor's update is gone"};
  }
  if (turned_away) {
    return {HazardOutcome::unavailable,
            fmt::format("the counter turns the rightful holder away: its fencing number was {}, "
                        "after the first one's {}",
                        next.fencing.value_or(0), held.fencing.value_or(0))};
  }
  if (written == loadgen::WriteResult::rejected_stale) {
    return {HazardOutcome::safe, "the counter turned the late write away by its fencing number"};
  }
  return {HazardOutcome::safe,
          fmt::format("no update was lost; the successor {}",
                      next.granted() ? "got the lock" : "had to wait for the stopped holder")};
}

const ScenarioRegistration plain({
    .name = "pause-holding",
    .question = "The holder stands still for longer than its lock lasts: does a stale write come?",
    .quick = true,
    .dose = Dose::stall,
    .play = [](Play& play) { return pause(play, false); },
});

const ScenarioRegistration fenced({
    .name = "pause-holding-fenced",
    .question = "The same, with a counter that checks fencing numbers: is the stale write stopped?",
    .quick = true,
    .play = [](Play& play) { return pause(play, true); },
});

}  // namespace
}  // namespace lockbench::hazards
