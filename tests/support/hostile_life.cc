#include "tests/support/hostile_life.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "strategies/env.h"
#include "strategies/registry.h"
#include "tests/support/fiber_lock.h"

namespace lockbench::test {
namespace {

/// Expects a non-empty, readable reason.
void expect_reason(std::string_view reason) {
  EXPECT_FALSE(reason.empty());
  EXPECT_LT(reason.size(), 500U);
  EXPECT_TRUE(std::ranges::none_of(reason, [](unsigned char byte) {
    return byte < ' ' || byte == 0x7f;
  })) << reason;
}

}  // namespace

void live(const Descriptor& strategy, const std::string& url, const std::function<void()>& on_grant,
          Duration timeout) {
  constexpr Duration kTtl = std::chrono::seconds(10);
  const auto env = make_system_env(random_seed());
  Services services;
  const Endpoints endpoints{{server_set(strategy), {url}}};
  const StrategyOptions options{.command_timeout = timeout, .wait_replicas = 1};
  const auto lock = make_carried(
      strategy,
      {.endpoints = endpoints, .options = options, .env = *env, .services = services, .client = 3});

  const AcquireResult result = lock->acquire(
      {.key = "lockbench:hostile:{k}", .ttl = kTtl, .deadline = env->now() + timeout / 4});
  EXPECT_EQ(result.lease.has_value(), result.outcome == AcquireOutcome::acquired);
  if (result.outcome == AcquireOutcome::failed || result.outcome == AcquireOutcome::unknown) {
    expect_reason(result.reason);
  }
  if (!result.lease) return;
  on_grant();
  const RenewResult renewed = lock->renew(*result.lease, kTtl);
  if (renewed.outcome == RenewOutcome::failed) expect_reason(renewed.reason);
  const ReleaseResult released = lock->release(*result.lease);
  if (released.outcome == ReleaseOutcome::failed) expect_reason(released.reason);
}

void expect_no_false_grants(const Descriptor& strategy, const std::vector<Misdeed>& misdeeds,
                            const std::function<Honest()>& make, int on_from) {
  /// Returns the number of requests that the server got.
  const auto play = [&](const HostileServer::Plan& plan, bool& granted, Duration timeout) {
    const Honest honest = make();
    const HostileServer server(honest.speaker, plan);
    const std::string url = fmt::format("{}{}{}", honest.scheme, server.address(), honest.query);
    const auto on_grant = [&] {
      granted = true;
      EXPECT_TRUE(honest.has_granted(server.exchanges()));
    };
    live(strategy, url, on_grant, timeout);
    return static_cast<int>(server.exchanges().size());
  };
  bool granted = false;
  const int requests = play({}, granted, kPatience);
  ASSERT_TRUE(granted) << "at an honest server";
  play_all(
      misdeeds, requests,
      [&](const HostileServer::Plan& plan) {
        bool ignored = false;
        play(plan, ignored, kHostileTimeout);
      },
      on_from);
}

std::vector<const Descriptor*> strategies_of(std::string_view backend) {
  std::vector<const Descriptor*> all = all_strategies();
  std::erase_if(all, [&](const Descriptor* strategy) {
    return strategy->backend != backend || strategy->traits.updates;
  });
  return all;
}

}  // namespace lockbench::test
