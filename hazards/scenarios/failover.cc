#include <fmt/format.h>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

Verdict failover(Play& play) {
  play.store().cut_replication();
  play.record_fault("replication is cut");
  return while_held(
      play, [](PrivateStore& store) { store.fail_over(); },
      fmt::format("the primary of {} died and its replica took over", play.store().struck()));
}

/// All replicas have acknowledged the grant; the one that takes over among them.
Verdict acknowledged(Play& play) {
  return while_held(
      play, [](PrivateStore& store) { store.fail_over(); },
      "the primary died after its replicas had acknowledged the grant");
}

/// One acknowledgement is required. One replica acknowledges, the other one takes over.
Verdict wrong_replica(Play& play) {
  play.store().cut_off_successor();
  play.record_fault("one of the replicas is cut off");
  return while_held(play, [](PrivateStore& store) { store.fail_over(); },
                    "the primary died, and the replica that had not acknowledged took over",
                    {.wait_replicas = 1});
}

const ScenarioRegistration failover_sentinel_scenario({
    .name = "failover-sentinel",
    .question =
        "Sentinels replace a primary whose last grant was not replicated: do two hold the lock?",
    .setup = Setup::watched,
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      if (!store_traits(strategy.backend).sentinels) return "its store has no sentinels";
      if (strategy.traits.nodes > 1)
        return "its nodes are independent: there is no failover between them";
      if (strategy.traits.needs_replicas) return "it grants no lock without replicas: see failover";
      return std::nullopt;
    },
    .play = failover,
});

const ScenarioRegistration failover_scenario({
    .name = "failover",
    .question = "The primary dies before a grant is replicated: do two hold the lock?",
    .setup = Setup::replicated,
    .quick = true,
    .play = failover,
});

const auto only_with_replicas =
    only_if([](const Descriptor& one) { return one.traits.needs_replicas; },
            "it does not wait for replicas: see failover");

const ScenarioRegistration failover_acknowledged_scenario({
    .name = "failover-acknowledged",
    .question = "The replicas acknowledge a grant, then the primary dies: do two hold the lock?",
    .setup = Setup::replicated,
    .exempts = only_with_replicas,
    .play = acknowledged,
});

const ScenarioRegistration failover_wrong_replica_scenario({
    .name = "failover-wrong-replica",
    .question =
        "One of two replicas acknowledges the grant, the other takes over: do two hold the lock?",
    .setup = Setup::replicated,
    .exempts = only_with_replicas,
    .play = wrong_replica,
});

}  // namespace
}  // namespace lockbench::hazards
