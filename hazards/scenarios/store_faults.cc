#include <fmt/format.h>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// `what`: what happened to the server, or to one of them.
Verdict strike(Play& play, const std::function<void(PrivateStore&)>& fault, std::string_view what) {
  return while_held(play, fault, fmt::format("{} {}", play.store().struck(), what));
}

Verdict restart(Play& play) {
  return strike(
      play, [](PrivateStore& store) { store.restart(); }, "was killed and restarted");
}

Verdict clock_jump(Play& play) {
  return strike(
      play, [](PrivateStore& store) { store.jump_clock(2 * kLongTtl); },
      "had its clock moved ahead");
}

Verdict eviction(Play& play, const char* policy) {
  return strike(
      play, [&](PrivateStore& store) { store.fill_memory(play.key(), policy); },
      "ran out of memory");
}

const auto only_for_redis =
    only_if([](const Descriptor& one) { return store_traits(one.backend).evicts_keys; },
            "it does not use Redis");

const ScenarioRegistration store_restart_empty_scenario({
    .name = "store-restart-empty",
    .question = "The store is killed and restarts empty: do two clients hold the lock?",
    .setup = Setup::volatile_,
    .quick = true,
    .play = restart,
});

const ScenarioRegistration store_restart_durable_scenario({
    .name = "store-restart-durable",
    .question = "The store is killed and restarts with its data: do two clients hold the lock?",
    .setup = Setup::durable,
    .play = restart,
});

const ScenarioRegistration store_clock_jump_scenario({
    .name = "store-clock-jump",
    .question = "The store's wall clock jumps ahead: do two clients hold the lock?",
    .setup = Setup::clocked,
    .play = clock_jump,
});

const ScenarioRegistration redis_eviction_scenario({
    .name = "redis-eviction",
    .question = "Redis runs out of memory under volatile-ttl: do two clients hold the lock?",
    .setup = Setup::cramped,
    .exempts = only_for_redis,
    .play = [](Play& play) { return eviction(play, "volatile-ttl"); },
});

const ScenarioRegistration redis_eviction_lru_scenario({
    .name = "redis-eviction-lru",
    .question = "Redis runs out of memory under allkeys-lru: do two clients hold the lock?",
    .setup = Setup::cramped,
    .exempts = only_for_redis,
    .play = [](Play& play) { return eviction(play, "allkeys-lru"); },
});

const ScenarioRegistration memcached_eviction_scenario({
    .name = "memcached-eviction",
    .question =
        "memcached runs out of memory for items of the lock's size: do two clients hold the lock?",
    .setup = Setup::cramped,
    .exempts = only_if([](const Descriptor& one) { return store_traits(one.backend).evicts_items; },
                       "it does not use memcached"),
    .play = [](Play& play) { return eviction(play, ""); },
});

}  // namespace
}  // namespace lockbench::hazards
