#include <fmt/format.h>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// The store ends the session of a holder that is alive, connected and sends keep-alives.
Verdict session_expiry(Play& play) {
  Actor& holder = play.client("holder", {.checks_fencing = true});
  Actor& successor = play.client("successor", {.checks_fencing = true});
  const Grant held = holder.must_acquire();
  holder.read(held);
  // end_session() returns only when the end is visible, which may be later than the end itself.
  const TimePoint lost_at = BootClock::now();
  play.store().end_session(play.key());
  const TimePoint ended_at = BootClock::now();
  play.record_fault("the store ended the holder's session");
  const Grant next = successor.acquire(play.stuck_after());
  require_answer(next);
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

const ScenarioRegistration session_expiry_scenario({
    .name = "session-expiry",
    .question = "The store ends the session of a working client: is its late write rejected?",
    .quick = true,
    .exempts = only_if([](const Descriptor& one) { return one.traits.expiry == Expiry::session; },
                       "it does not use a session"),
    .play = session_expiry,
});

}  // namespace
}  // namespace lockbench::hazards
