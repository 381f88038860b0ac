#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// The visitor uses an old lease that it has already released.
Verdict release_without_holding(Play& play) {
  play.set_ttl(kLongTtl);
  Actor& visitor = play.client("visitor");
  const Grant spent = visitor.must_acquire();
  if (visitor.release(spent) != ReleaseOutcome::released) {
    throw Failure("the visitor could not release its own lock");
  }
  play.client("holder").must_acquire();
  const Grant refused = visitor.acquire();
  require_answer(refused);
  if (refused.granted()) throw Failure("two clients hold the lock without any fault");
  play.record_fault("the visitor's clean-up code releases with its old lease");
  require_release(visitor.release(spent));
  return verdict_of_release(play, "holder");
}

const ScenarioRegistration release_without_holding_scenario({
    .name = "release-without-holding",
    .question = "A client that was refused releases in its clean-up: does it free another's lock?",
    .quick = true,
    .play = release_without_holding,
});

}  // namespace
}  // namespace lockbench::hazards
