#include "strategies/descriptor.h"

#include <algorithm>

namespace lockbench {
namespace {

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

}  // namespace

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

std::vector<KnownHazard> join_hazards(std::vector<KnownHazard> own,
                                      std::initializer_list<std::span<const KnownHazard>> shared,
                                      std::initializer_list<std::string_view> withstood) {
  for (const std::span<const KnownHazard> list : shared) {
    for (const KnownHazard& hazard : list) {
      const bool skip =
          std::ranges::find(withstood, hazard.scenario) != withstood.end() ||
          std::ranges::find(own, hazard.scenario, &KnownHazard::scenario) != own.end();
      if (!skip) own.push_back(hazard);
    }
  }
  return own;
}

std::string_view to_string(Expiry expiry) {
  switch (expiry) {
    case Expiry::none:
      return "none";
    case Expiry::ttl:
      return "ttl";
    case Expiry::session:
      return "session";
  }
  return "?";
}

std::string_view to_string(OwnerCheck check) {
  switch (check) {
    case OwnerCheck::none:
      return "none";
    case OwnerCheck::local_clock:
      return "local clock";
    case OwnerCheck::two_steps:
      return "two steps";
    case OwnerCheck::atomic:
      return "atomic";
  }
  return "?";
}

std::string_view to_string(HazardOutcome outcome) {
  switch (outcome) {
    case HazardOutcome::safe:
      return "safe";
    case HazardOutcome::double_grant:
      return "double-grant";
    case HazardOutcome::lost_update:
      return "lost-update";
    case HazardOutcome::foreign_release:
      return "foreign-release";
    case HazardOutcome::foreign_renewal:
      return "foreign-renewal";
    case HazardOutcome::stuck:
      return "stuck";
    case HazardOutcome::self_deadlock:
      return "self-deadlock";
    case HazardOutcome::unavailable:
      return "unavailable";
    case HazardOutcome::refused:
      return "refused";
    case HazardOutcome::recovers:
      return "recovers";
    case HazardOutcome::known_loss:
      return "known-loss";
    case HazardOutcome::not_applicable:
      return "not-applicable";
    case HazardOutcome::not_played:
      return "not-played";
  }
  return "?";
}

}  // namespace lockbench
