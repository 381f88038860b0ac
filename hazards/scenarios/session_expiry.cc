#include <fmt/format.h>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// The holder lives, is connected and keeps its session alive; all the same the store ends it.
Verdict session_expiry(Play& play) {
  Actor& holder = play.client("holder", {.checks_fencing = true});
  Actor& successor = play.client("successor", {.checks_fencing = true});
  const Grant held = holder.hold();
  holder.read(held);
  // Stages look again whether it has ended: when they know, it may have ended long ago.
  const TimePoint lost_at = std::chrono::steady_clock::now();
  play.stage().end_session(play.key());
  const TimePoint ended_at = std::chrono::steady_clock::now();
  play.tell("the store has ended the holder's session");
  const Grant next = successor.acquire(play.patience());
  need_answer(next);
  if (!next.granted()) {
    return {HazardOutcome::stuck, "the session ended, and its lock did not"};
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
            fmt::format("the next client got the lock after {}, and the counter turned the first "
                        "one's late write away by its fencing number",
                        milliseconds(std::max(next.answered_at - ended_at, Duration::zero())))};
  }
  return {HazardOutcome::lost_update,
          "the first client went on writing when the lock was another's already"};
}

const ScenarioRegistration registration({
    .name = "session-expiry",
    .question = "The store ends the session of a client at work: is its late write stopped?",
    .quick = true,
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.traits.expiry == Expiry::session) return std::nullopt;
      return "it lives in no session";
    },
    .play = session_expiry,
});

}  // namespace
}  // namespace lockbench::hazards
