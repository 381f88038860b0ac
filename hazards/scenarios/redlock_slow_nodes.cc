#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// Every answer takes longer than the TTL. A first acquisition with a long TTL shows that the votes
/// do arrive.
Verdict slow_nodes(Play& play) {
  constexpr std::chrono::milliseconds kEachWay{100};
  constexpr Duration kTtl = kEachWay * 3 / 2;
  Actor& client =
      play.client("client", {.behind_line = true, .node_timeout = std::chrono::milliseconds(1500)});
  for (const auto& line : client.lines()) line->delay(kEachWay);
  play.record_fault("every answer takes " + milliseconds(2 * kEachWay));
  play.set_ttl(kLongTtl);
  const Grant lasting = client.must_acquire();
  play.note("grant_seconds", lasting.answered_at - lasting.asked_at);
  client.release(lasting);

  play.change_key();
  play.set_ttl(kTtl);
  const Grant grant = client.acquire();
  require_answer(grant);
  if (!grant.granted()) {
    if (grant.answered_at - grant.asked_at < 2 * kEachWay) {
      throw Failure("refused before any vote arrived, so lack of validity was not the reason");
    }
    return {HazardOutcome::refused,
            "the validity, counted from the request, was used up when the votes arrived"};
  }
  play.note("validity_left_seconds", *grant.valid_until - grant.answered_at);
  const Grant second = play.client("second").acquire(std::chrono::seconds(2));
  return verdict_of_two(play, second, "the lock had expired when it was granted");
}

const ScenarioRegistration redlock_slow_nodes_scenario({
    .name = "redlock-slow-nodes",
    .question = "Votes arrive when the validity is used up: is the lock granted anyway?",
    .quick = true,
    .exempts = only_for_quorums,
    .play = slow_nodes,
});

}  // namespace
}  // namespace lockbench::hazards
