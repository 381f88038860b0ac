#include <fmt/format.h>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// What befell the server, or the one of them that was struck.
Verdict strike(Play& play, const std::function<void(Stage&)>& fault, std::string_view what) {
  return while_held(play, fault, fmt::format("{} {}", play.stage().struck(), what));
}

Verdict restart(Play& play) {
  return strike(
      play, [](Stage& stage) { stage.restart(); }, "was killed and came back");
}

Verdict clock_jump(Play& play) {
  return strike(
      play, [](Stage& stage) { stage.jump_clock(2 * kLongTtl); }, "found its clock ahead");
}

Verdict eviction(Play& play) {
  return strike(
      play, [&](Stage& stage) { stage.fill_memory(play.key()); }, "ran out of memory");
}

auto only_for(std::string_view backend, std::string_view why) {
  return [=](const Descriptor& strategy) -> std::optional<std::string> {
    if (strategy.backend == backend) return std::nullopt;
    return std::string(why);
  };
}

const ScenarioRegistration empty({
    .name = "store-restart-empty",
    .question = "The store is killed and comes back empty: do two hold the lock?",
    .ground = Ground::volatile_,
    .quick = true,
    .play = restart,
});

const ScenarioRegistration durable({
    .name = "store-restart-durable",
    .question = "The store is killed and comes back with its data: do two hold the lock?",
    .ground = Ground::durable,
    .play = restart,
});

const ScenarioRegistration jump({
    .name = "store-clock-jump",
    .question = "The store's wall clock jumps ahead: do two hold the lock?",
    .ground = Ground::clocked,
    .play = clock_jump,
});

const ScenarioRegistration redis_eviction({
    .name = "redis-eviction",
    .question = "Redis runs out of memory under volatile-ttl: do two hold the lock?",
    .ground = Ground::cramped,
    .exempts = only_for("redis", "it does not live in Redis"),
    .play = eviction,
});

const ScenarioRegistration memcached_eviction({
    .name = "memcached-eviction",
    .question = "memcached runs out of memory for items of the lock's size: do two hold the lock?",
    .ground = Ground::cramped,
    .exempts = only_for("memcached", "it does not live in memcached"),
    .play = eviction,
});

}  // namespace
}  // namespace lockbench::hazards
