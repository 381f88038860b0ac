#include "tests/conformance/common/properties.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "strategies/registry.h"

namespace lockbench::test {
namespace {

TEST(Properties, AllApplyToSomeStrategy) {
  const auto strategies = all_strategies();
  for (const Property& property : all_properties()) {
    const bool used = std::any_of(strategies.begin(), strategies.end(), [&](const auto* strategy) {
      return property.applies(*strategy);
    });
    EXPECT_TRUE(used) << property.name << " checks nothing";
  }
}

}  // namespace
}  // namespace lockbench::test
