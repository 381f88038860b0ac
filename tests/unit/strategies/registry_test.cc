#include "strategies/registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "strategies/services.h"
#include "tests/support/test_names.h"

namespace lockbench {
namespace {

TEST(Registry, HasEveryStrategyOnce) {
  for (const Descriptor* strategy : all_strategies()) {
    EXPECT_EQ(find_strategy(strategy->name), strategy);
  }
  for (const char* other : {"", "redis", "redis-setnx "}) {
    EXPECT_EQ(find_strategy(other), nullptr) << other;
  }
  EXPECT_THROW(Registration(Descriptor{.name = "none"}), std::logic_error);
}

const Registration absent({.name = "store-x",
                           .backend = "store",
                           .not_built = "built without libstore"});

TEST(Registry, ListsLeftOutStrategiesSeparately) {
  const auto strategies = absent_strategies();
  const auto found = std::find_if(strategies.begin(), strategies.end(),
                                  [](const auto* strategy) { return strategy->name == "store-x"; });
  ASSERT_NE(found, strategies.end());
  EXPECT_EQ((*found)->backend, "store");
  EXPECT_EQ((*found)->not_built, "built without libstore");
  EXPECT_EQ(find_strategy("store-x"), nullptr);
  for (const Descriptor* strategy : all_strategies()) EXPECT_TRUE(strategy->not_built.empty());
}

TEST(Registry, HasATypicalStrategyOfEachStore) {
  std::set<std::string_view> backends, typical;
  for (const Descriptor* strategy : all_strategies()) {
    backends.insert(strategy->backend);
    if (strategy->typical) typical.insert(strategy->backend);
  }
  EXPECT_EQ(typical, backends);
}

TEST(Registry, ListsControlsFirstThenByBackendAndName) {
  const auto strategies = all_strategies();
  ASSERT_GE(strategies.size(), 3U);
  EXPECT_EQ(strategies[0]->name, "none");
  EXPECT_EQ(strategies[1]->name, "local-mutex");
  EXPECT_TRUE(std::is_sorted(
      strategies.begin() + 2, strategies.end(), [](const Descriptor* a, const Descriptor* b) {
        return std::pair(a->backend, a->name) < std::pair(b->backend, b->name);
      }));
}

/// Lists are derived from descriptors, so each must be complete.
class EveryDescriptor : public testing::TestWithParam<const Descriptor*> {};

TEST_P(EveryDescriptor, IsComplete) {
  const Descriptor& strategy = *GetParam();
  EXPECT_FALSE(strategy.summary.empty());
  EXPECT_EQ(strategy.summary.find('\n'), std::string_view::npos);
  EXPECT_FALSE(strategy.source.empty());
  EXPECT_EQ(strategy.hazards.empty(), strategy.traits.updates);
  EXPECT_TRUE(strategy.make);
  EXPECT_FALSE(strategy.key_suffixes.empty());

  const bool local = strategy.backend == "local";
  // Chubby is named after its contract, not its store.
  EXPECT_TRUE(local || strategy.name.starts_with(strategy.backend) || strategy.name == "chubby" ||
              strategy.traits.nodes != 1);
  // An update of the store's own reads nothing before.
  EXPECT_TRUE(strategy.acquire_commands.empty() == local || strategy.traits.updates);
  EXPECT_EQ(strategy.release_commands.empty(), local);
  EXPECT_EQ(strategy.traits.nodes == 0, local);
}

TEST_P(EveryDescriptor, NamesAHazardOnceAndOnlyThoseThatBreakIt) {
  std::set<std::string_view> scenarios;
  for (const KnownHazard& hazard : GetParam()->hazards) {
    EXPECT_TRUE(scenarios.insert(hazard.scenario).second) << hazard.scenario;
    EXPECT_NE(hazard.outcome, HazardOutcome::safe) << hazard.scenario;
    EXPECT_NE(hazard.outcome, HazardOutcome::not_applicable) << hazard.scenario;
  }
}

TEST_P(EveryDescriptor, OffersOnlyPoliciesThatWaitAccepts) {
  const Traits& traits = GetParam()->traits;
  std::set<WaitKind> kinds;
  for (const WaitKind kind : traits.waiting_choices) {
    EXPECT_TRUE(kinds.insert(kind).second);
    const auto asked = parse_wait_policy(kind == WaitKind::poll      ? "poll:1ms"
                                         : kind == WaitKind::backoff ? "backoff:1ms..2ms"
                                                                     : to_string(kind));
    EXPECT_TRUE((asked && asked->kind == kind) || kind == traits.waiting.kind)
        << to_string(kind) << " cannot be given with --wait";
  }
  // If there are choices, the default is one of them.
  EXPECT_TRUE(kinds.empty() || kinds.contains(traits.waiting.kind))
      << GetParam()->name << ": its default, " << to_string(traits.waiting.kind)
      << ", is not in waiting_choices";
}

TEST_P(EveryDescriptor, HasConsistentTraits) {
  const Traits& traits = GetParam()->traits;
  // Expiry by the clients' clocks is the key's value, which cannot be renewed.
  const bool renewable =
      traits.expiry == Expiry::ttl && traits.release_check != OwnerCheck::local_clock;
  EXPECT_EQ(traits.renew_check.has_value(), renewable);
  EXPECT_FALSE(traits.updates && traits.promises_exclusion);
  EXPECT_TRUE(!traits.renews || traits.expiry != Expiry::none);
  EXPECT_TRUE(!traits.ttl_in_seconds || traits.expiry == Expiry::ttl);
}

INSTANTIATE_TEST_SUITE_P(, EveryDescriptor, testing::ValuesIn(all_strategies()),
                         [](const auto& tested) { return test::test_name_of(tested.param->name); });

template <int kNumber>
struct Tombstone {
  explicit Tombstone(std::string& to) : log(to) {}
  ~Tombstone() { log += std::to_string(kNumber); }
  std::string& log;
};

TEST(Services, AreDestroyedInReverseOrder) {
  std::string log;
  {
    Services services;
    services.provide(std::make_shared<Tombstone<1>>(log));
    services.get_or_make<Tombstone<2>>([&] { return std::make_shared<Tombstone<2>>(log); });
    services.get_or_make<Tombstone<3>>([&] { return std::make_unique<Tombstone<3>>(log); });
    EXPECT_EQ(log, "");
  }
  EXPECT_EQ(log, "321");
}

TEST(Services, ThreadsShareTheOneInstance) {
  Services services;
  std::atomic<int> made{0};
  std::vector<int*> seen(8);
  {
    std::vector<std::jthread> threads;
    threads.reserve(seen.size());
    for (auto& place : seen) {
      threads.emplace_back([&services, &made, &place] {
        place = &services.get_or_make<int>([&] { return std::make_shared<int>(++made); });
      });
    }
  }
  EXPECT_EQ(made, 1);
  for (const int* number : seen) EXPECT_EQ(number, seen[0]);
}

}  // namespace
}  // namespace lockbench
