#include <fmt/format.h>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// A client acquires the lock with a long TTL, the fault strikes, and a second client tries:
/// `double-grant` or `safe`. `refused` if the store does not grant the lock to the first client.
/// `before`: just before it asks.
Verdict while_held(Play& play, const std::function<void(PrivateStore&)>& fault,
                   std::string_view what, const ActorSettings& settings = {},
                   const std::function<void()>& before = {}) {
  play.set_ttl(kLongTtl);
  Actor& holder = play.client("holder", settings);
  if (before) before();
  const Grant held = holder.acquire(std::chrono::seconds(5));
  if (held.outcome == AcquireOutcome::refused) {
    return {HazardOutcome::refused, "the lock is not granted, as a failover could lose it"};
  }
  if (!held.granted()) throw Failure("the holder did not get the lock: " + held.reason);
  const TimePoint struck_at = PlayClock::now();
  fault(play.store());
  play.record_fault(std::string(what));
  const Grant second = play.client("second", settings).acquire(std::chrono::seconds(2));
  if (second.outcome == AcquireOutcome::refused && !second.reason.empty()) {
    throw Failure("the second client was refused the lock, which was not taken: " + second.reason);
  }
  if (second.granted() && held.valid_until) {
    require_in_time("after the fault, the second client got the lock", *held.valid_until,
                    second.answered_at, {});
  }
  if (second.granted()) record_belief_gap(play, holder, held, struck_at);
  return verdict_of_two(play, second, what);
}

/// `what`: the effect on the server, or on one of the servers: "was killed and restarted".
Verdict strike(Play& play, const std::function<void(PrivateStore&)>& fault, std::string_view what) {
  return while_held(play, fault, fmt::format("{} {}", play.store().struck(), what));
}

Verdict restart(Play& play) {
  return strike(
      play, [](PrivateStore& store) { store.restart(); }, "was killed and restarted");
}

/// With `appendfsync everysec` Redis syncs the first write of a second soon, and all others with
/// the first write of the next one. Plays again if the grant was synced by chance.
Verdict durability_second(Play& play) {
  constexpr int kRounds = 5;
  std::uintmax_t lost = 0;
  Verdict verdict;
  for (int round = 0; round < kRounds && lost == 0; ++round) {
    play.change_key();
    Actor& neighbour = play.client("neighbour");
    verdict = while_held(
        play, [&](PrivateStore& store) { lost = store.crash_host(); },
        fmt::format("{} lost what it had not synced, as its host crashed", play.store().struck()),
        {}, [&] { neighbour.warm_up(); });
    play.note("lost_bytes", static_cast<std::int64_t>(lost));
  }
  return verdict;
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

Verdict failover(Play& play) {
  play.store().cut_replication();
  play.record_fault("replication is cut");
  return while_held(
      play, [](PrivateStore& store) { store.fail_over(); },
      fmt::format("the primary of {} died and its replica took over", play.store().struck()));
}

/// All replicas have acknowledged the grant, including the one that takes over.
Verdict acknowledged(Play& play) {
  return while_held(
      play, [](PrivateStore& store) { store.fail_over(); },
      "the primary died after its replicas had acknowledged the grant");
}

/// One acknowledgement is required. One replica acknowledges, the other takes over.
Verdict wrong_replica(Play& play) {
  play.store().cut_off_successor();
  play.record_fault("one of the replicas is cut off");
  return while_held(play, [](PrivateStore& store) { store.fail_over(); },
                    "the primary died, and the replica that had not acknowledged took over",
                    {.wait_replicas = 1});
}

const auto only_with_replicas =
    only_if([](const Descriptor& one) { return one.traits.needs_replicas; },
            "it does not wait for replicas: see failover");

/// The store may lose the lock and the fencing numbers. Before the fault, the first client reads
/// the fenced counter, which registers its number; it writes after the second client. If the lock
/// survives, the second client gets it after an orderly release, so that a number is drawn before
/// and after the fault.
Verdict lose_numbers(Play& play, int earlier_grants,
                     const std::function<void(PrivateStore&)>& fault, std::string_view what) {
  play.set_ttl(kLongTtl);
  Actor& holder = play.client("holder", {.checks_fencing = true});
  for (int i = 0; i < earlier_grants; ++i) holder.release(holder.must_acquire());
  const Grant held = holder.must_acquire();
  if (!held.fencing) throw Failure("the grant has no fencing number");
  holder.read(held);
  fault(play.store());
  play.record_fault(std::string(what));
  Actor& second = play.client("second", {.checks_fencing = true});
  Grant next = second.acquire(std::chrono::seconds(2));
  const bool survived = !next.granted();
  play.note("lock_survived", survived);
  if (survived) {
    require_late_release(holder, held, holder.release(held));
    next = second.must_acquire();
  }
  play.note("first_number", static_cast<std::int64_t>(*held.fencing));
  play.note("second_number", static_cast<std::int64_t>(next.fencing.value_or(0)));
  second.read(next);
  const loadgen::WriteResult written = second.write(next);
  const loadgen::WriteResult late = holder.write(held);
  const std::uint64_t lost = play.accepted_writes() - play.counter();
  play.note("lost_updates", static_cast<std::int64_t>(lost));
  if (lost > 0) {
    return {
        HazardOutcome::lost_update,
        fmt::format("the second client's fencing number was {}, the first client's {}: the counter "
                    "accepted both writes",
                    next.fencing.value_or(0), *held.fencing)};
  }
  if (written == loadgen::WriteResult::rejected_stale) {
    return {HazardOutcome::unavailable,
            fmt::format("the counter rejects every new holder until the fencing numbers, which "
                        "restarted at {}, have passed {}",
                        next.fencing.value_or(0), *held.fencing)};
  }
  if (late != loadgen::WriteResult::rejected_stale) {
    throw Failure("the late write was accepted, but no update was lost");
  }
  return {
      HazardOutcome::safe,
      fmt::format("the {} survived, the fencing numbers went on growing, and the late write was "
                  "rejected",
                  survived ? "lock" : "counter")};
}

Verdict numbers_after_restart(Play& play) {
  return lose_numbers(
      play, 10, [](PrivateStore& store) { store.restart(); },
      "the store was killed and came back empty");
}

/// No number has been replicated.
Verdict numbers_after_failover(Play& play) {
  play.store().cut_replication();
  play.record_fault("replication is cut");
  return lose_numbers(
      play, 0, [](PrivateStore& store) { store.fail_over(); },
      "the primary died and its replica took over");
}

const auto only_with_fencing =
    only_if([](const Descriptor& one) { return one.traits.fencing; },
            "its grants have no fencing numbers: see pause-holding-fenced");

Verdict rogue_delete(Play& play) {
  play.set_ttl(std::chrono::seconds(6));
  Actor& holder = play.client("holder");
  Actor& contender = play.client("contender");
  const Grant held = holder.must_acquire();
  const TimePoint struck_at = PlayClock::now();
  const bool deleted = play.store().remove_key(play.key());
  const std::string what =
      fmt::format("an outside client {} the key in {}", deleted ? "deleted" : "could not delete",
                  play.store().struck());
  play.record_fault(what);
  play.note("key_deleted", deleted);
  const Grant second = contender.acquire(std::chrono::seconds(1));
  if (second.granted()) record_belief_gap(play, holder, held, struck_at);
  return verdict_of_two(play, second, what);
}

Verdict shard_failover(Play& play) {
  play.store().aim_at(play.key());
  return failover(play);
}

/// The clients know where the lock was before it moves.
Verdict reshard_holding(Play& play) {
  play.set_ttl(kLongTtl);
  PrivateStore& store = play.store();
  Actor& holder = play.client("holder");
  Actor& second = play.client("second");
  const Grant held = holder.must_acquire();
  store.aim_at(play.key());
  for (const bool keys : {true, false}) {
    if (keys) {
      store.move_keys();
    } else {
      store.move_slot();
    }
    const std::string what =
        fmt::format("the lock's {} moved to another shard", keys ? "keys" : "slot");
    play.record_fault(what);
    // No answer is as good as a refusal: the lock is taken.
    const Grant next = second.try_acquire({});
    if (next.granted()) return verdict_of_two(play, next, what);
  }
  const bool renewed =
      !play.traits().renew_check || holder.renew(held, kLongTtl) == RenewOutcome::renewed;
  play.note("renewed", renewed);
  holder.release(held);
  const Grant third = play.client("third").try_acquire(std::chrono::seconds(2));
  if (!third.granted()) {
    return {HazardOutcome::stuck, "the release did not follow the lock to its new shard"};
  }
  if (!renewed) {
    return {HazardOutcome::known_loss, "the renewal did not follow the lock to its new shard"};
  }
  return {HazardOutcome::safe, "the lock was kept, renewed and released on its new shard"};
}

Verdict shard_lost(Play& play) {
  play.set_ttl(kLongTtl);
  Actor& holder = play.client("holder");
  Actor& second = play.client("second");
  const Grant held = holder.must_acquire();
  play.store().aim_at(play.key());
  play.store().lose_shard();
  play.record_fault("the primary of the lock's shard died, and its last replica");
  const Grant next = second.try_acquire(std::chrono::seconds(2));
  play.note("answered_after_seconds", next.answered_at - next.asked_at);
  if (next.granted()) return verdict_of_two(play, next, "the shard was lost");
  if (holder.release(held) == ReleaseOutcome::released) {
    throw Failure("a release reached a shard that is gone");
  }
  return {HazardOutcome::unavailable, "nobody gets the lock: " + next.reason};
}

const auto only_on_shards = only_if(
    [](const Descriptor& one) {
      const Traits& traits = one.traits;
      return store_traits(one.backend).shards && traits.nodes == 1 && !traits.needs_replicas;
    },
    "it does not run on a Redis Cluster");

const ScenarioRegistration store_faults_scenarios({
    {.name = "store-restart-empty",
     .question = "The store is killed and restarts empty: do two clients hold the lock?",
     .setup = Setup::volatile_,
     .quick = true,
     .play = restart},
    {.name = "store-restart-durable",
     .question = "The store is killed and restarts with its data: do two clients hold the lock?",
     .setup = Setup::durable,
     .play = restart},
    {.name = "durability-second",
     .question =
         "The store's host crashes within a second of a grant: do two clients hold the lock?",
     .setup = Setup::unsynced,
     .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
       if (auto why = only_for_redis(strategy)) return why;
       if (!strategy.traits.needs_replicas) return std::nullopt;
       return "its replicas have the grant: see failover-acknowledged";
     },
     .play = durability_second},
    {.name = "store-clock-jump",
     .question = "The store's wall clock jumps ahead: do two clients hold the lock?",
     .setup = Setup::clocked,
     .play = clock_jump},
    {.name = "redis-eviction",
     .question = "Redis runs out of memory under volatile-ttl: do two clients hold the lock?",
     .setup = Setup::cramped,
     .exempts = only_for_redis,
     .play = [](Play& play) { return eviction(play, "volatile-ttl"); }},
    {.name = "redis-eviction-lru",
     .question = "Redis runs out of memory under allkeys-lru: do two clients hold the lock?",
     .setup = Setup::cramped,
     .exempts = only_for_redis,
     .play = [](Play& play) { return eviction(play, "allkeys-lru"); }},
    {.name = "memcached-eviction",
     .question =
         "memcached runs out of memory for items of the lock's size: do two clients hold the lock?",
     .setup = Setup::cramped,
     .exempts =
         only_if([](const Descriptor& one) { return store_traits(one.backend).evicts_items; },
                 "it does not use memcached"),
     .play = [](Play& play) { return eviction(play, ""); }},
    {.name = "failover-sentinel",
     .question =
         "Sentinels replace a primary whose last grant was not replicated: do two hold the lock?",
     .setup = Setup::watched,
     .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
       if (!store_traits(strategy.backend).sentinels) return "its store has no sentinels";
       if (strategy.traits.nodes > 1)
         return "its nodes are independent: there is no failover between them";
       if (strategy.traits.needs_replicas)
         return "it grants no lock without replicas: see failover";
       return std::nullopt;
     },
     .play = failover},
    {.name = "failover",
     .question = "The primary dies before a grant is replicated: do two hold the lock?",
     .setup = Setup::replicated,
     .quick = true,
     .play = failover},
    {.name = "failover-acknowledged",
     .question = "The replicas acknowledge a grant, then the primary dies: do two hold the lock?",
     .setup = Setup::replicated,
     .exempts = only_with_replicas,
     .play = acknowledged},
    {.name = "failover-wrong-replica",
     .question =
         "One of two replicas acknowledges the grant, the other takes over: do two hold the lock?",
     .setup = Setup::replicated,
     .exempts = only_with_replicas,
     .play = wrong_replica},
    {.name = "shard-failover",
     .question = "The primary of the lock's shard dies before a grant is replicated: do two hold "
                 "the lock?",
     .like = "failover",
     .setup = Setup::sharded,
     .by_key = true,
     .exempts = only_on_shards,
     .play = shard_failover},
    {.name = "reshard-holding",
     .question = "The lock's slot moves to another shard: is it kept, renewed and released there?",
     .setup = Setup::sharded,
     .by_key = true,
     .exempts = only_on_shards,
     .play = reshard_holding},
    {.name = "shard-lost",
     .question = "The lock's shard is lost with its last replica: are clients told soon?",
     .setup = Setup::sharded,
     .by_key = true,
     .exempts = only_on_shards,
     .play = shard_lost},
    {.name = "restart-fenced",
     .question =
         "The store restarts empty and loses the fencing numbers: what does a fenced counter do?",
     .setup = Setup::volatile_,
     .exempts = only_with_fencing,
     .play = numbers_after_restart},
    {.name = "failover-fenced",
     .question = "A replica without the last fencing number takes over: is an update lost?",
     .setup = Setup::replicated,
     .exempts = only_with_fencing,
     .play = numbers_after_failover},
    {.name = "rogue-delete",
     .question = "An outside client deletes the key: do two clients hold the lock?",
     .play = rogue_delete},
});

}  // namespace
}  // namespace lockbench::hazards
