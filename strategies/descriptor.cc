#include "strategies/descriptor.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "strategies/registry.h"
#include "strategies/words.h"

namespace lockbench {
namespace {

using namespace std::string_view_literals;

constexpr std::array kExpiries{"none"sv, "ttl"sv, "session"sv};
constexpr std::array kChecks{"none"sv, "local clock"sv, "two steps"sv, "atomic"sv};
constexpr std::array kOutcomes{
    "safe"sv,       "double-grant"sv,   "lost-update"sv, "foreign-release"sv, "foreign-renewal"sv,
    "stuck"sv,      "self-deadlock"sv,  "unavailable"sv, "refused"sv,         "recovers"sv,
    "known-loss"sv, "not-applicable"sv, "not-played"sv};

constexpr std::pair<std::string_view, StoreTraits> kStores[] = {
    {"local", {.servers = false}},
    {"redis",
     {.one_thread = true,
      .keeps_counter = true,
      .asynchronous_replicas = true,
      .sentinels = true,
      .shards = true,
      .expires_by_wall_clock = true,
      .evicts_keys = true}},
    {"memcached", {.evicts_items = true}},
    {"nats", {.expires_by_wall_clock = true}},
    {"zookeeper", {.members_agree = true}},
    {"etcd", {.members_agree = true, .frozen_leader_ends_sessions = true}},
    {"postgres",
     {.asynchronous_replicas = true,
      .expires_by_wall_clock = true,
      .transactions = true,
      .poolers = true,
      .user_timeout = true,
      .connections = 100,
      .keepalives = "tcp_keepalives_idle = 5, tcp_keepalives_interval = 1, tcp_keepalives_count = "
                    "3"}},
    {"mysql",
     {.asynchronous_replicas = true,
      .expires_by_wall_clock = true,
      .transactions = true,
      .connections = 151,
      .keepalives = "tcp_keepalive_time = 5, tcp_keepalive_interval = 1, tcp_keepalive_probes = "
                    "3"}}};

std::optional<RenewalTiming> timing_of(const Traits& traits, const StrategyOptions& options) {
  const auto& asked = options.renew;
  std::optional<RenewalTiming> timing = traits.renews;
  if (asked && traits.renewable) {
    timing.reset();
    if (asked->kind != RenewPolicy::Kind::off) timing.emplace();
    if (asked->kind == RenewPolicy::Kind::every) timing->every = asked->period;
  }
  if (timing && options.renew_retry) timing->retries_soon = true;
  return timing;
}

std::vector<const Descriptor*> in_catalogue_order(bool built) {
  auto strategies = Registration::all();
  std::erase_if(strategies, [&](const auto* one) { return one->not_built.empty() != built; });
  std::ranges::sort(strategies, {}, [](const Descriptor* one) {
    const bool keeps = one->traits.promises_exclusion || one->traits.updates;
    return std::tuple(keeps, store_traits(one->backend).servers, one->backend, one->name);
  });
  return strategies;
}

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
bool waiting_transactions(const Facts& of) {
  return of.store.transactions && has_session(of) && of.traits.waiting.kind == WaitKind::queue;
}
/// A pooler of transactions would give its session to others, so it refuses one.
bool refuses_poolers(const Facts& of) {
  return of.store.poolers && of.traits.ends_with_connection && !of.traits.pooled;
}
/// Its lock is a transaction that is idle while the holder works.
bool idle_transaction(const Facts& of) {
  return of.store.transactions && of.traits.released_together;
}
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
bool by_client_clocks(const Facts& of) { return of.traits.by_client_clocks || by_local_clock(of); }
/// The store ends the lock, not a time stored as its value.
bool store_ends_it(const Facts& of) {
  return has_ttl(of) && !by_client_clocks(of) && !of.traits.observed;
}
/// The lock is lost if one server loses its latest writes.
bool loses_writes(const Facts& of) {
  return of.store.asynchronous_replicas && one_node(of) && !of.traits.needs_replicas;
}

struct Rule {
  std::string_view scenario;
  HazardOutcome outcome;
  bool (*applies)(const Facts&);
};

// Tables show the gravest outcome; of equals, the first.
constexpr Rule kRules[] = {
    {"client-clock-ahead", double_grant, by_client_clocks},
    {"holder-clock-behind", foreign_release, by_local_clock},
    {"failover-fenced", lost_update,
     [](const Facts& of) { return of.traits.fencing && loses_writes(of); }},
    {"restart-fenced", unavailable, [](const Facts& of) { return of.traits.fencing; }},
    {"crash-holding", stuck, is_endless},
    {"crash-mid-acquire", stuck, is_endless},
    {"crash-mid-renew", stuck,
     [](const Facts& of) { return is_endless(of) && of.traits.renew_check.has_value(); }},
    {"host-crash", stuck,
     [](const Facts& of) { return is_endless(of) || of.traits.ends_with_connection; }},
    {"host-crash-user-timeout", stuck,
     [](const Facts& of) { return of.store.user_timeout && of.traits.ends_with_connection; }},
    // The server grants the lock to the session of a client that stands still.
    {"pause-waiting", stuck, waiting_transactions},
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
    {"renewal-stalled", known_loss,
     [](const Facts& of) { return runs_out(of) && (has_session(of) || of.traits.renews); }},
    {"member-isolated", known_loss, members},
    {"leader-isolated", known_loss, members},
    {"leader-frozen", double_grant,
     [](const Facts& of) { return of.store.frozen_leader_ends_sessions && has_session(of); }},
    {"store-restart-durable", double_grant, ends_with_connection},
    {"failover", refused, needs_replicas},
    {"failover", double_grant, loses_writes},
    // Redis syncs its file every second by default.
    {"durability-second", double_grant,
     [](const Facts& of) { return of.store.evicts_keys && loses_writes(of); }},
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
    {"idle-session-timeout", double_grant, ends_with_connection},
    {"crash-work-continues", double_grant,
     [](const Facts& of) { return of.store.transactions && !is_endless(of); }},
    {"pooler-leaked-lock", refused, refuses_poolers},
    {"pooler-reentry", refused, refuses_poolers},
    {"transaction-timeout-statement", unavailable, waiting_transactions},
    {"transaction-timeout-inside-statement", unavailable, waiting_transactions},
    {"transaction-timeout-inside-lock", unavailable,
     [](const Facts& of) { return waiting_transactions(of) && !of.traits.own_wait_limit; }},
    {"transaction-timeout-inside-idle", double_grant,
     [](const Facts& of) { return idle_transaction(of) && waiting_transactions(of); }},
    {"transaction-timeout-idle", double_grant, idle_transaction},
    {"transaction-timeout-idle", unavailable, transactions},
    {"redlock-majority-down", unavailable, quorum_of_nodes},
    {"shard-lost", unavailable,
     [](const Facts& of) { return of.store.shards && one_node(of) && !of.traits.needs_replicas; }},
    {"redlock-slow-nodes", refused, quorum_of_nodes},
};

}  // namespace

const StoreTraits& store_traits(std::string_view backend) {
  static constexpr StoreTraits kAny{};
  const auto* const known =
      std::ranges::find(kStores, backend, [](const auto& store) { return store.first; });
  return known == std::end(kStores) ? kAny : known->second;
}

std::string server_set(const Descriptor& descriptor) {
  return std::string(descriptor.backend) + (descriptor.traits.needs_replicas ? "-replicated" : "");
}

std::vector<std::string> urls_of(const Descriptor& descriptor, const Endpoints& endpoints) {
  auto urls = endpoints.find(server_set(descriptor));
  if (urls == endpoints.end()) urls = endpoints.find(descriptor.backend);
  return urls == endpoints.end() ? std::vector<std::string>() : urls->second;
}

std::unique_ptr<LockStrategy> make_strategy(const Descriptor& descriptor, Context context) {
  const auto& choices = descriptor.traits.waiting_choices;
  const auto& asked = context.options.wait;
  const bool possible = asked && std::ranges::find(choices, asked->kind) != choices.end();
  context.waiting = possible ? *asked : descriptor.traits.waiting;
  context.urls = urls_of(descriptor, context.endpoints);
  context.renewing = timing_of(descriptor.traits, context.options);
  return descriptor.make(context);
}

Descriptor with_known_hazards(Descriptor strategy) {
  const Facts facts{strategy.traits, store_traits(strategy.backend)};
  // A control without a lock has no holder to harm.
  if (!facts.store.servers || strategy.traits.updates) return strategy;
  auto& hazards = strategy.hazards;
  for (const Rule& rule : kRules) {
    const bool known =
        std::ranges::find(hazards, rule.scenario, &KnownHazard::scenario) != hazards.end();
    if (!known && rule.applies(facts)) hazards.push_back({rule.scenario, rule.outcome});
  }
  return strategy;
}

std::string_view to_string(Expiry expiry) { return word_of<Expiry::session>(kExpiries, expiry); }

std::string_view to_string(OwnerCheck check) { return word_of<OwnerCheck::atomic>(kChecks, check); }

std::string_view to_string(HazardOutcome outcome) {
  return word_of<HazardOutcome::not_played>(kOutcomes, outcome);
}

std::vector<const Descriptor*> all_strategies() { return in_catalogue_order(true); }

std::vector<const Descriptor*> absent_strategies() { return in_catalogue_order(false); }

const Descriptor* find_strategy(std::string_view name) {
  const Descriptor* const strategy = Registration::find(name);
  return strategy != nullptr && strategy->not_built.empty() ? strategy : nullptr;
}

}  // namespace lockbench
