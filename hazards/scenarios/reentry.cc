#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

Verdict reentry(Play& play) {
  play.ask_for_ttl(std::chrono::seconds(6));
  Actor& holder = play.client("holder");
  Actor& contender = play.client("contender");
  const Grant outer = holder.hold();
  const Grant inner = holder.acquire(std::chrono::seconds(1));
  need_answer(inner);
  if (!inner.granted()) {
    return {HazardOutcome::self_deadlock, "the holder's second acquisition waits for itself"};
  }
  need_release(holder.release(inner));
  const Grant between = contender.acquire();
  need_answer(between);
  if (between.granted()) {
    return {
        HazardOutcome::double_grant,
        "granted twice but not counted: the first release freed the lock that the outer section "
        "still relied on"};
  }
  need_release(holder.release(outer));
  const Grant after = contender.acquire(std::chrono::seconds(1));
  need_answer(after);
  if (after.granted()) {
    return {HazardOutcome::safe, "granted twice, free after the second release"};
  }
  return {HazardOutcome::stuck, "granted twice, and still held after both releases"};
}

const ScenarioRegistration registration({
    .name = "reentry",
    .question = "The holder acquires again, and releases twice: counted, confused or deadlocked?",
    .play = reentry,
});

}  // namespace
}  // namespace lockbench::hazards
