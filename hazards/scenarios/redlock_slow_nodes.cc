#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// Every answer takes longer than the lock would last. That the votes do come is shown first, by a
/// lock that lasts long.
Verdict slow_nodes(Play& play) {
  constexpr std::chrono::milliseconds kEachWay{100};
  constexpr Duration kTtl = kEachWay * 3 / 2;
  Actor& client =
      play.client("client", {.behind_line = true, .node_timeout = std::chrono::milliseconds(1500)});
  for (const auto& line : client.lines()) line->delay(kEachWay);
  play.tell("every answer takes " + milliseconds(2 * kEachWay));
  play.ask_for_ttl(kLongTtl);
  const Grant lasting = client.hold();
  play.note("grant_seconds", lasting.answered_at - lasting.asked_at);
  client.release(lasting);

  play.change_key();
  play.ask_for_ttl(kTtl);
  const Grant grant = client.acquire();
  need_answer(grant);
  if (!grant.granted()) {
    if (grant.answered_at - grant.asked_at < 2 * kEachWay) {
      throw StageFailure("refused before any vote was in, so not for want of validity");
    }
    return {HazardOutcome::refused,
            "all votes were in when the lock's validity, counted from the question, was over"};
  }
  play.note("validity_left_seconds", *grant.valid_until - grant.answered_at);
  const Grant second = play.client("second").acquire(std::chrono::seconds(2));
  return verdict_of_two(play, second, "the lock was over when it was granted");
}

const ScenarioRegistration registration({
    .name = "redlock-slow-nodes",
    .question = "Votes arrive when the validity is used up: is the lock granted all the same?",
    .quick = true,
    .exempts = unless_on_several_nodes,
    .play = slow_nodes,
});

}  // namespace
}  // namespace lockbench::hazards
