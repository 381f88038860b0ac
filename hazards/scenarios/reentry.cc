#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

Verdict reentry(Play& play) {
  play.set_ttl(std::chrono::seconds(6));
  Actor& holder = play.client("holder");
  Actor& contender = play.client("contender");
  const Grant outer = holder.must_acquire();
  const Grant inner = holder.acquire(std::chrono::seconds(1));
  require_answer(inner);
  if (!inner.granted()) {
    return {HazardOutcome::self_deadlock, "the holder's second acquisition waits for its own lock"};
  }
  require_release(holder.release(inner));
  const Grant between = contender.acquire();
  require_answer(between);
  if (between.granted()) {
    return {
        HazardOutcome::double_grant,
        "granted twice but not counted: the inner release freed the lock that the outer section "
        "still needed"};
  }
  require_release(holder.release(outer));
  const Grant after = contender.acquire(std::chrono::seconds(1));
  require_answer(after);
  if (after.granted()) {
    return {HazardOutcome::safe, "granted twice, and free after the second release"};
  }
  return {HazardOutcome::stuck, "granted twice, but still taken after both releases"};
}

const ScenarioRegistration reentry_scenario({
    .name = "reentry",
    .question =
        "The holder acquires the lock a second time: is it counted, freed too early or deadlocked?",
    .play = reentry,
});

}  // namespace
}  // namespace lockbench::hazards
