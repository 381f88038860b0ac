#include <thread>

#include "hazards/lapse.h"
#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// The second client does not renew, so its lock lasts one TTL. If it lasts much longer, the first
/// client has prolonged it.
Verdict foreign_renewal(Play& play) {
  Actor& holder = play.client("holder");
  Actor& second = play.client("second", {.renews = false});
  Actor& third = play.client("third");
  const Grant held = holder.must_acquire();
  holder.stop();
  await_expiry(play, held);
  const Grant next = second.acquire(play.stuck_after());
  holder.resume();
  require_answer(next);
  if (!next.granted()) return not_run_out("its holder was stopped");
  const Duration ttl = play.ttl();
  // A renewal timer goes on by itself.
  if (!play.traits().renews) {
    const RenewOutcome renewed = holder.renew(held, 4 * ttl);
    if (renewed == RenewOutcome::failed || renewed == RenewOutcome::unsupported) {
      throw Failure("the first holder's renewal did not reach the store");
    }
  }
  // Not earlier: a client that asks may itself prolong the lock.
  std::this_thread::sleep_until(next.answered_at + ttl * 3 / 2);
  const Grant last = third.acquire(5 * ttl);
  require_answer(last);
  const Duration lasted = last.answered_at - next.answered_at;
  play.note("second_lasted_seconds", lasted);
  if (last.granted() && lasted < ttl * 5 / 2 + play.traits().kept_longer) {
    return {HazardOutcome::safe, "the second client's lock ended as it should, " +
                                     milliseconds(lasted) + " after the grant"};
  }
  return {HazardOutcome::foreign_renewal,
          "the first holder's renewal prolonged the second client's lock: its TTL was " +
              milliseconds(ttl) + ", it lasted " + milliseconds(lasted)};
}

const ScenarioRegistration foreign_renewal_scenario({
    .name = "foreign-renewal",
    .question =
        "The first holder renews after its lock expired: does it prolong the second client's lock?",
    .needs = Scenario::Needs::expiry,
    .quick = true,
    .exempts = only_if([](const Descriptor& one) { return one.traits.renew_check.has_value(); },
                       "its validity cannot be prolonged by a client"),
    .play = foreign_renewal,
});

}  // namespace
}  // namespace lockbench::hazards
