#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

Verdict reentry(Play& play) {
  play.ask_for_ttl(std::chrono::seconds(6));
  Actor& holder = play.client("holder");
  Actor& contender = play.client("contender");
  const Grant outer = holder.hold();
  const Grant inner = holder.acquire(std::chrono::seconds(1));
  if (!inner.granted()) {
    return {HazardOutcome::self_deadlock, "the holder's second acquisition waits for itself"};
  }
  holder.release(inner);
  if (contender.acquire().granted()) {
    return {
        HazardOutcome::double_grant,
        "granted twice but not counted: the first release freed the lock that the outer section "
        "still relied on"};
  }
  holder.release(outer);
  if (contender.acquire(std::chrono::seconds(1)).granted()) {
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
