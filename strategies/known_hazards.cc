#include <algorithm>
#include <array>

#include "strategies/descriptor.h"

namespace lockbench {
namespace {

using enum HazardOutcome;

struct Facts {
  const Traits& traits;
  const StoreTraits& store;
};

bool one_node(const Facts& of) { return of.traits.nodes == 1; }
bool quorum_of_nodes(const Facts& of) { return of.traits.nodes > 1; }
bool has_ttl(const Facts& of) { return of.traits.expiry == Expiry::ttl; }
bool has_session(const Facts& of) { return of.traits.expiry == Expiry::session; }
bool ends_with_connection(const Facts& of) { return of.traits.ends_with_connection; }
bool needs_replicas(const Facts& of) { return of.traits.needs_replicas; }
bool transactions(const Facts& of) { return of.store.transactions; }
bool waiting_transactions(const Facts& of) { return of.store.transactions && has_session(of); }
bool members(const Facts& of) { return of.store.members_agree; }
/// The lock can end while its holder works.
bool runs_out(const Facts& of) {
  return has_ttl(of) || (has_session(of) && !of.traits.ends_with_connection);
}
/// Nothing but a release ends it while others ask for it.
bool is_endless(const Facts& of) {
  return of.traits.expiry == Expiry::none || of.traits.prolonged_by_contenders;
}
bool by_local_clock(const Facts& of) { return of.traits.release_check == OwnerCheck::local_clock; }
bool unchecked_release(const Facts& of) {
  return of.traits.release_check == OwnerCheck::none || by_local_clock(of);
}
/// The store ends the lock, not a time that is the lock's value.
bool store_ends_it(const Facts& of) { return has_ttl(of) && !by_local_clock(of); }
/// The loss of one server's latest writes is the loss of the lock.
bool loses_writes(const Facts& of) {
  return of.store.asynchronous_replicas && one_node(of) && !of.traits.needs_replicas;
}

struct Rule {
  std::string_view scenario;
  HazardOutcome outcome;
  bool (*applies)(const Facts&);
};

// Tables show the gravest outcome, and the first of those that are equally grave.
constexpr Rule kRules[] = {
    {"client-clock-ahead", double_grant, by_local_clock},
    {"holder-clock-behind", foreign_release, by_local_clock},
    {"failover-fenced", lost_update,
     [](const Facts& of) { return of.traits.fencing && loses_writes(of); }},
    {"restart-fenced", unavailable, [](const Facts& of) { return of.traits.fencing; }},
    {"crash-holding", stuck, is_endless},
    {"crash-mid-acquire", stuck, is_endless},
    {"host-crash", stuck,
     [](const Facts& of) { return is_endless(of) || of.traits.ends_with_connection; }},
    {"host-crash-user-timeout", stuck, ends_with_connection},
    {"late-release", foreign_release,
     [](const Facts& of) { return has_ttl(of) && of.traits.release_check == OwnerCheck::none; }},
    {"release-race", foreign_release,
     [](const Facts& of) { return has_ttl(of) && of.traits.release_check != OwnerCheck::atomic; }},
    {"foreign-renewal", foreign_renewal,
     [](const Facts& of) { return of.traits.renew_check == OwnerCheck::none; }},
    {"release-without-holding", foreign_release, unchecked_release},
    {"lost-answer-acquire", stuck, unchecked_release},
    {"lost-answer-release", foreign_release, unchecked_release},
    {"redlock-node-restart-empty", double_grant, quorum_of_nodes},
    {"redlock-clock-jump", double_grant, quorum_of_nodes},
    {"pause-holding", lost_update, runs_out},
    {"runaway-holder", stuck,
     [](const Facts& of) {
       return is_endless(of) || has_session(of) || of.traits.renews.has_value();
     }},
    {"pause-holding-fenced", lost_update,
     [](const Facts& of) { return runs_out(of) && !of.traits.fencing; }},
    {"overrun-holding-fenced", lost_update,
     [](const Facts& of) { return has_ttl(of) && !of.traits.renews && !of.traits.fencing; }},
    {"overrun-holding", known_loss,
     [](const Facts& of) { return has_ttl(of) && !of.traits.renews; }},
    {"partition-holder", known_loss, runs_out},
    {"member-isolated", known_loss, members},
    {"leader-isolated", known_loss, members},
    {"store-restart-durable", double_grant, ends_with_connection},
    {"failover", refused, needs_replicas},
    {"failover", double_grant, loses_writes},
    {"failover-sentinel", double_grant,
     [](const Facts& of) { return of.store.sentinels && loses_writes(of); }},
    {"store-restart-empty", double_grant, one_node},
    {"redis-eviction-lru", double_grant,
     [](const Facts& of) { return of.store.evicts_keys && one_node(of); }},
    {"memcached-eviction", double_grant, [](const Facts& of) { return of.store.evicts_items; }},
    {"rogue-delete", double_grant,
     [](const Facts& of) { return one_node(of) && !of.traits.ends_with_connection; }},
    {"reentry", self_deadlock, [](const Facts& of) { return !of.traits.reentrant; }},
    {"store-clock-jump", double_grant,
     [](const Facts& of) {
       return of.store.expires_by_wall_clock && one_node(of) && store_ends_it(of);
     }},
    {"redis-eviction", double_grant,
     [](const Facts& of) { return of.store.evicts_keys && one_node(of) && store_ends_it(of); }},
    {"failover-wrong-replica", double_grant, needs_replicas},
    {"pooler-leaked-lock", refused, ends_with_connection},
    {"pooler-reentry", refused, ends_with_connection},
    {"transaction-timeout-statement", unavailable, waiting_transactions},
    {"transaction-timeout-inside-statement", unavailable, waiting_transactions},
    {"transaction-timeout-inside-lock", unavailable, waiting_transactions},
    {"transaction-timeout-idle", unavailable, transactions},
    {"redlock-majority-down", unavailable, quorum_of_nodes},
    {"redlock-slow-nodes", refused, quorum_of_nodes},
};

}  // namespace

Descriptor with_known_hazards(Descriptor strategy) {
  const Facts facts{strategy.traits, store_traits(strategy.backend)};
  if (!facts.store.servers) return strategy;
  auto& hazards = strategy.hazards;
  for (const Rule& rule : kRules) {
    const bool known =
        std::ranges::find(hazards, rule.scenario, &KnownHazard::scenario) != hazards.end();
    if (!known && rule.applies(facts)) hazards.push_back({rule.scenario, rule.outcome});
  }
  return strategy;
}

}  // namespace lockbench
