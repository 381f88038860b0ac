#include <fmt/format.h>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

Verdict failover(Play& play) {
  play.stage().cut_replication();
  play.tell("replication is cut");
  return while_held(
      play, [](Stage& stage) { stage.fail_over(); },
      fmt::format("the primary of {} died and its replica took over", play.stage().struck()));
}

/// One replica acknowledges, and that is all that was asked for; the other one takes over.
Verdict wrong_replica(Play& play) {
  play.stage().cut_off_successor();
  play.tell("one of the replicas is cut off");
  return while_held(play, [](Stage& stage) { stage.fail_over(); },
                    "the primary died, and the replica took over that had not acknowledged",
                    {.wait_replicas = 1});
}

const ScenarioRegistration sentinel({
    .name = "failover-sentinel",
    .question = "Sentinels replace the primary, which had a grant to itself: do two hold the lock?",
    .ground = Ground::watched,
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.backend != "redis") return "no sentinels watch its store";
      if (strategy.traits.nodes > 1) return "its nodes are independent: none replaces another";
      if (strategy.traits.needs_replicas) return "it grants nothing without replicas: see failover";
      return std::nullopt;
    },
    .play = failover,
});

const ScenarioRegistration takeover({
    .name = "failover",
    .question = "The primary dies with a grant that was not replicated: do two hold the lock?",
    .ground = Ground::replicated,
    .quick = true,
    .play = failover,
});

const ScenarioRegistration wrong({
    .name = "failover-wrong-replica",
    .question = "One of two replicas has acknowledged, the other takes over: do two hold the lock?",
    .ground = Ground::replicated,
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (strategy.traits.needs_replicas) return std::nullopt;
      return "it waits for no replica: see failover";
    },
    .play = wrong_replica,
});

}  // namespace
}  // namespace lockbench::hazards
