#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// The second's lock lasts one TTL and is not renewed by the second. If it lasts much longer, the
/// first has prolonged it.
Verdict foreign_renewal(Play& play) {
  Actor& holder = play.client("holder");
  Actor& second = play.client("second", {.renews = false});
  Actor& third = play.client("third");
  const Grant held = holder.hold();
  holder.stop();
  const Grant next = second.acquire(play.patience());
  holder.resume();
  need_answer(next);
  if (!next.granted()) {
    return {HazardOutcome::safe, "the lock did not run out while its holder stood still"};
  }
  const Duration ttl = play.ttl();
  // Where a timer renews it goes on by itself.
  if (!play.traits().renews) {
    const RenewOutcome renewed = holder.renew(held, 4 * ttl);
    if (renewed == RenewOutcome::failed || renewed == RenewOutcome::unsupported) {
      throw StageFailure("the first holder's renewal did not reach the store");
    }
  }
  const Grant last = third.acquire(5 * ttl);
  need_answer(last);
  const Duration lasted = last.answered_at - next.answered_at;
  play.note("second_lasted_seconds", lasted);
  if (last.granted() && lasted < ttl * 5 / 2) {
    return {HazardOutcome::safe, "the second's lock ended when it should, " + milliseconds(lasted) +
                                     " after it was granted"};
  }
  return {HazardOutcome::foreign_renewal,
          "the first holder renewed, and with it the second's lock: asked for " +
              milliseconds(ttl) + ", it lasted " + milliseconds(lasted)};
}

const ScenarioRegistration registration({
    .name = "foreign-renewal",
    .question = "The first holder renews after its lock ran out: does it prolong the second's?",
    .quick = true,
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.traits.renew_check) return std::nullopt;
      return "it has no validity that a client could prolong";
    },
    .play = foreign_renewal,
});

}  // namespace
}  // namespace lockbench::hazards
