#include <gmock/gmock.h>

#include <ostream>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

struct Promise {
  const Descriptor* strategy = nullptr;
  Property property;
};

std::ostream& operator<<(std::ostream& out, const Promise& promise) {
  return out << promise.strategy->name;
}

/// The kind of store that a suite needs to test it.
std::string store_for(const Descriptor& strategy) {
  return strategy.traits.nodes > 1 ? std::string(strategy.backend) + "-quorum"
                                   : server_set(strategy);
}

/// Every strategy that this suite has servers for, with each of its promises.
std::vector<Promise> all_promises() {
  std::vector<Promise> promises;
  const std::vector<Property> of_locks = all_properties(), of_updates = update_properties();
  for (const Descriptor* strategy : all_strategies()) {
    const auto backends = tested_backends();
    const auto found = std::find(backends.begin(), backends.end(), store_for(*strategy));
    if (found == backends.end()) continue;
    for (const Property& property : strategy->traits.updates ? of_updates : of_locks) {
      if (property.applies(*strategy)) promises.push_back({strategy, property});
    }
  }
  return promises;
}

std::string test_name(const testing::TestParamInfo<Promise>& info) {
  return test_name_of(info.param.strategy->name) + "_" + std::string(info.param.property.name);
}

class Strategies : public testing::TestWithParam<Promise> {};

TEST_P(Strategies, KeepTheirPromises) {
  EXPECT_EQ(GetParam().property.complaint(*GetParam().strategy), "");
}

INSTANTIATE_TEST_SUITE_P(All, Strategies, testing::ValuesIn(all_promises()), test_name);

/// In the facts about the store that a result shows.
TEST(StoreFacts, TellVersionAndRestarts) {
  const auto tested = own_store();
  const auto store = store_at(tested->server().port());
  const auto before = store->facts();
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_THAT(before->version, testing::MatchesRegex("[0-9]+\\.[0-9.]+"));
  const std::string_view backend = tested_backends().front();
  const bool tells_cpu = backend.starts_with("redis") || backend == "memcached";
  EXPECT_EQ(before->cpu_seconds.value_or(0) > 0, tells_cpu);
  EXPECT_EQ(store->facts()->instance, before->instance);
  ASSERT_TRUE(tested->server().restart(true));
  (void)store->facts();  // learns that the connection is gone
  const auto after = store->facts();
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_NE(after->instance, before->instance);
}

}  // namespace

std::vector<Property> all_properties() {
  std::vector<Property> all;
  for (const auto& group :
       {exclusion_properties(), waiting_properties(), leftover_properties(), expiry_properties(),
        command_properties(), failure_properties(), own_properties()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

std::vector<Property> own_properties() {
  const auto properties = tested_store().properties;
  return properties == nullptr ? std::vector<Property>{} : properties();
}

Property find_property(std::string_view name) {
  for (const Property& property : all_properties()) {
    if (property.name == name) return property;
  }
  throw std::out_of_range("no such property: " + std::string(name));
}

namespace {

/// The lease has ended by the time the client learns of the grant, although the server still has
/// it.
class LateGrants : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    warm_up(*client_, bench_.key());
    client_->faults().next_answer_is_late(2 * kLongTtl);
  }

  Bench bench_{*find_strategy(GetParam()), unrenewed()};
  const std::unique_ptr<Client> client_ = bench_.client();
};

TEST_P(LateGrants, AreGivenBack) {
  const AcquireResult late = client_->try_once(bench_.key());
  EXPECT_EQ(late.outcome, AcquireOutcome::refused) << late.reason;
  EXPECT_FALSE(bench_.is_held());
}

TEST_P(LateGrants, ThatCannotBeGivenBackAreUnknown) {
  client_->faults().drop_command(2, 100);
  const AcquireResult late = client_->try_once(bench_.key());
  EXPECT_EQ(late.outcome, AcquireOutcome::unknown);
  EXPECT_THAT(late.reason, testing::HasSubstr(shared_endpoints().front()));
  EXPECT_TRUE(bench_.is_held());
}

// Some stores have none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LateGrants);
INSTANTIATE_TEST_SUITE_P(
    , LateGrants,
    testing::ValuesIn(of_tested_store({"redis-set-nx-lua", "redis-set-nx-check", "redis-fenced",
                                       "redis-queue", "redis-reentrant", "redis-reentrant-notify",
                                       "postgres-lease", "postgres-lease-client-clock"})),
    [](const auto& tested) { return test::test_name_of(tested.param); });

}  // namespace

}  // namespace lockbench::test
