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

struct KnownStore {
  std::string_view backend;
  StoreTraits traits;
};
constexpr KnownStore kStores[] = {
    {"local", {.servers = false}},
    {"redis",
     {.one_thread = true,
      .keeps_counter = true,
      .asynchronous_replicas = true,
      .sentinels = true,
      .expires_by_wall_clock = true,
      .evicts_keys = true}},
    {"memcached", {.evicts_items = true}},
    {"zookeeper", {.members_agree = true}},
    {"etcd", {.members_agree = true}},
    {"postgres",
     {.asynchronous_replicas = true, .expires_by_wall_clock = true, .transactions = true}}};

std::optional<RenewalTiming> timing_of(const Traits& traits,
                                       const std::optional<RenewPolicy>& asked) {
  if (!asked || !traits.renewable) return traits.renews;
  switch (asked->kind) {
    case RenewPolicy::Kind::off:
      return std::nullopt;
    case RenewPolicy::Kind::automatic:
      return RenewalTiming{};
    case RenewPolicy::Kind::every:
      return RenewalTiming{.every = asked->period};
  }
  return traits.renews;
}

auto catalogue_order(const Descriptor* strategy) {
  return std::tuple(strategy->traits.promises_exclusion, store_traits(strategy->backend).servers,
                    strategy->backend, strategy->name);
}

std::vector<const Descriptor*> in_catalogue_order(bool built) {
  auto strategies = Registration::all();
  std::erase_if(strategies, [&](const auto* one) { return one->not_built.empty() != built; });
  std::ranges::sort(strategies, {}, catalogue_order);
  return strategies;
}

}  // namespace

const StoreTraits& store_traits(std::string_view backend) {
  static constexpr StoreTraits kAny{};
  const auto* const known = std::ranges::find(kStores, backend, &KnownStore::backend);
  return known == std::end(kStores) ? kAny : known->traits;
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
  context.renewing = timing_of(descriptor.traits, context.options.renew);
  return descriptor.make(context);
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
