#include <algorithm>
#include <array>

#include "strategies/descriptor.h"

namespace lockbench {
namespace {

using enum HazardOutcome;

/// What the rules ask of a strategy.
struct Facts {
  explicit Facts(const Descriptor& strategy)
      : traits(strategy.traits), store(store_traits(strategy.backend)) {}

  const Traits& traits;
  const StoreTraits& store;

  bool one_node() const { return traits.nodes == 1; }
  bool has_ttl() const { return traits.expiry == Expiry::ttl; }
  bool has_session() const { return traits.expiry == Expiry::session; }
  /// The lock can end while its holder works.
  bool runs_out() const { return has_ttl() || (has_session() && !traits.ends_with_connection); }
  /// Nothing but a release ends it while others ask for it.
  bool is_endless() const {
    return traits.expiry == Expiry::none || traits.prolonged_by_contenders;
  }
  bool releases(std::initializer_list<OwnerCheck> checks) const {
    return std::ranges::find(checks, traits.release_check) != checks.end();
  }
  /// The store ends the lock, not a time that is the lock's value.
  bool store_ends_it() const { return has_ttl() && !releases({OwnerCheck::local_clock}); }
  /// The loss of one server's latest writes is the loss of the lock.
  bool loses_writes() const {
    return store.asynchronous_replicas && one_node() && !traits.needs_replicas;
  }
};

struct Rule {
  std::string_view scenario;
  HazardOutcome outcome;
  bool (*applies)(const Facts&);
};

bool quorum_of_nodes(const Facts& of) { return of.traits.nodes > 1; }
bool ends_with_connection(const Facts& of) { return of.traits.ends_with_connection; }
bool needs_replicas(const Facts& of) { return of.traits.needs_replicas; }
bool transactions(const Facts& of) { return of.store.transactions; }
bool waiting_transactions(const Facts& of) { return of.store.transactions && of.has_session(); }
bool members(const Facts& of) { return of.store.members_agree; }
bool by_local_clock(const Facts& of) { return of.releases({OwnerCheck::local_clock}); }
bool unchecked_release(const Facts& of) {
  return of.releases({OwnerCheck::none, OwnerCheck::local_clock});
}
bool loses_writes(const Facts& of) { return of.loses_writes(); }
bool is_endless(const Facts& of) { return of.is_endless(); }
bool one_node(const Facts& of) { return of.one_node(); }
bool runs_out(const Facts& of) { return of.runs_out(); }

// Tables show the gravest outcome, and the first of those that are equally grave.
constexpr Rule kRules[] = {
    {"client-clock-ahead", double_grant, by_local_clock},
    {"holder-clock-behind", foreign_release, by_local_clock},
    {"failover-fenced", lost_update,
     [](const Facts& of) { return of.traits.fencing && of.loses_writes(); }},
    {"restart-fenced", unavailable, [](const Facts& of) { return of.traits.fencing; }},
    {"crash-holding", stuck, is_endless},
    {"crash-mid-acquire", stuck, is_endless},
    {"host-crash", stuck,
     [](const Facts& of) { return of.is_endless() || of.traits.ends_with_connection; }},
    {"host-crash-user-timeout", stuck, ends_with_connection},
    {"late-release", foreign_release,
     [](const Facts& of) { return of.has_ttl() && of.releases({OwnerCheck::none}); }},
    {"release-race", foreign_release,
     [](const Facts& of) { return of.has_ttl() && !of.releases({OwnerCheck::atomic}); }},
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
       return of.is_endless() || of.has_session() || of.traits.renews.has_value();
     }},
    {"pause-holding-fenced", lost_update,
     [](const Facts& of) { return of.runs_out() && !of.traits.fencing; }},
    {"overrun-holding-fenced", lost_update,
     [](const Facts& of) { return of.has_ttl() && !of.traits.renews && !of.traits.fencing; }},
    {"overrun-holding", known_loss,
     [](const Facts& of) { return of.has_ttl() && !of.traits.renews; }},
    {"partition-holder", known_loss, runs_out},
    {"member-isolated", known_loss, members},
    {"leader-isolated", known_loss, members},
    {"store-restart-durable", double_grant, ends_with_connection},
    {"failover", refused, needs_replicas},
    {"failover", double_grant, loses_writes},
    {"failover-sentinel", double_grant,
     [](const Facts& of) { return of.store.sentinels && of.loses_writes(); }},
    {"store-restart-empty", double_grant, one_node},
    {"redis-eviction-lru", double_grant,
     [](const Facts& of) { return of.store.evicts_keys && of.one_node(); }},
    {"memcached-eviction", double_grant, [](const Facts& of) { return of.store.evicts_items; }},
    {"rogue-delete", double_grant,
     [](const Facts& of) { return of.one_node() && !of.traits.ends_with_connection; }},
    {"reentry", self_deadlock, [](const Facts& of) { return !of.traits.reentrant; }},
    {"store-clock-jump", double_grant,
     [](const Facts& of) {
       return of.store.expires_by_wall_clock && of.one_node() && of.store_ends_it();
     }},
    {"redis-eviction", double_grant,
     [](const Facts& of) { return of.store.evicts_keys && of.one_node() && of.store_ends_it(); }},
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
  const Facts facts(strategy);
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
