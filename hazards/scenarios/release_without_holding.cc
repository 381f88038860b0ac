#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// The visitor has a lease in hand that it gave back before.
Verdict release_without_holding(Play& play) {
  play.ask_for_ttl(kLongTtl);
  Actor& visitor = play.client("visitor");
  const Grant spent = visitor.hold();
  if (visitor.release(spent) != ReleaseOutcome::released) {
    throw StageFailure("the visitor could not release what it held");
  }
  play.client("holder").hold();
  const Grant refused = visitor.acquire();
  need_answer(refused);
  if (refused.granted()) throw StageFailure("the lock lets two in without any fault");
  play.tell("the visitor's clean-up releases all the same, by the lease that it once had");
  need_release(visitor.release(spent));
  return verdict_of_release(play, "holder");
}

const ScenarioRegistration registration({
    .name = "release-without-holding",
    .question =
        "A client that was refused releases in its clean-up, by a lease it gave back: another's?",
    .quick = true,
    .play = release_without_holding,
});

}  // namespace
}  // namespace lockbench::hazards
