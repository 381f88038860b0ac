#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

Verdict release_without_holding(Play& play) {
  play.ask_for_ttl(kLongTtl);
  Actor& visitor = play.client("visitor");
  play.client("holder").hold();
  if (visitor.acquire().granted()) throw StageFailure("the lock lets two in without any fault");
  visitor.release_ungranted();
  return verdict_of_release(play, "holder");
}

const ScenarioRegistration registration({
    .name = "release-without-holding",
    .question = "A client that never got the lock releases in its clean-up: another's lock?",
    .quick = true,
    .play = release_without_holding,
});

}  // namespace
}  // namespace lockbench::hazards
