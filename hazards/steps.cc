#include "hazards/steps.h"

#include <fmt/format.h>

namespace lockbench::hazards {

std::string milliseconds(Duration duration) {
  return fmt::format("{} ms", std::chrono::round<std::chrono::milliseconds>(duration).count());
}

Verdict verdict_of_return(Play& play, const Grant& grant, TimePoint since) {
  if (!grant.granted()) {
    return {HazardOutcome::stuck,
            fmt::format("nobody got the lock, though somebody kept asking for "
                        "{} after it was held for the last time",
                        milliseconds(grant.answered_at - since))};
  }
  const Duration took = std::max(grant.answered_at - since, Duration::zero());
  play.note("recovery_seconds", took);
  return {HazardOutcome::recovers,
          fmt::format("the next client got the lock after {}", milliseconds(took))};
}

Grant overtake(Play& play, Actor& holder, Actor& second) {
  const Duration wait = play.patience();
  holder.stop();
  play.ask_for_ttl(kLongTtl);
  return second.acquire(wait);
}

Verdict verdict_of_release(Play& play, std::string_view owner) {
  const Grant third = play.client("third").acquire();
  if (third.granted()) {
    return {HazardOutcome::foreign_release,
            fmt::format("the release freed the lock of the {}: a third client got it at once while "
                        "the {} still held it",
                        owner, owner)};
  }
  return {HazardOutcome::safe, fmt::format("the {} still held its lock afterwards", owner)};
}

Verdict verdict_of_two(Play& play, const Grant& contender, std::string_view why) {
  if (contender.outcome == AcquireOutcome::failed) {
    throw StageFailure("the contender could not ask for the lock: " + contender.reason);
  }
  play.note("second_granted", contender.granted());
  if (contender.granted()) {
    return {HazardOutcome::double_grant,
            fmt::format(
                "{}: a second client was granted the lock while the first was still at work", why)};
  }
  return {HazardOutcome::safe, "nobody else got the lock while its holder was at work"};
}

void note_belief_gap(Play& play, Actor& holder, const Grant& held, TimePoint granted_to_another) {
  const Belief belief = holder.belief(held);
  play.note("holder_still_believes", belief.valid);
  if (belief.until) play.note("belief_gap_seconds", *belief.until - granted_to_another);
}

}  // namespace lockbench::hazards
