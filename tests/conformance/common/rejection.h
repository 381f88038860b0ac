#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "tests/conformance/common/bench.h"

namespace lockbench::test {

/// A lock that a check must reject for this very reason.
struct Rejection {
  std::string_view property;
  Descriptor lock;
  std::string_view reason;  ///< empty: the lock is sound
};

inline std::ostream& operator<<(std::ostream& out, const Rejection& rejection) {
  return out << rejection.reason;
}

inline std::string rejection_name(const testing::TestParamInfo<Rejection>& tested) {
  return std::string(tested.param.property) + "_" + std::to_string(tested.index);
}

inline void expect_rejection(const Rejection& expected) {
  const Property property = find_property(expected.property);
  ASSERT_TRUE(property.applies(expected.lock)) << property.name << " would never be asked";
  const Impatience waits_in_vain;
  const std::string said = property.complaint(expected.lock);
  if (expected.reason.empty()) {
    EXPECT_EQ(said, "") << property.name;
  } else {
    EXPECT_THAT(said, testing::HasSubstr(std::string(expected.reason))) << property.name;
  }
}

/// Expects that each property rejects some lock.
inline void expect_all_can_fail(const std::vector<Property>& properties,
                                const std::vector<Rejection>& rejections) {
  for (const Property& property : properties) {
    EXPECT_TRUE(std::ranges::any_of(
        rejections,
        [&](const Rejection& rejection) { return rejection.property == property.name; }))
        << property.name << " has rejected no lock yet";
  }
}

}  // namespace lockbench::test
