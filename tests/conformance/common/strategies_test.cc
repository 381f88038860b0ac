#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "strategies/registry.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/common/test_store.h"
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

/// What a suite must have to test it.
std::string store_for(const Descriptor& strategy) {
  return strategy.traits.nodes > 1 ? std::string(strategy.backend) + "-quorum"
                                   : server_set(strategy);
}

/// Every strategy that this suite has servers for, with every promise that it makes.
std::vector<Promise> all_promises() {
  std::vector<Promise> promises;
  const std::vector<Property> properties = all_properties();
  for (const Descriptor* strategy : all_strategies()) {
    const auto backends = tested_backends();
    const auto found = std::find(backends.begin(), backends.end(), store_for(*strategy));
    if (found == backends.end()) continue;
    for (const Property& property : properties) {
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
  EXPECT_EQ(GetParam().property.check(*GetParam().strategy), "");
}

INSTANTIATE_TEST_SUITE_P(All, Strategies, testing::ValuesIn(all_promises()), test_name);

TEST(Registry, EveryStrategyLivesOnAsManyServersAsThereAre) {
  const auto servers = shared_store().servers().size();
  for (const Promise& promise : all_promises()) {
    EXPECT_EQ(promise.strategy->traits.nodes > 1, servers > 1)
        << promise.strategy->name << " is tested on " << servers;
  }
}

}  // namespace
}  // namespace lockbench::test
