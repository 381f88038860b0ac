#include <gtest/gtest.h>

#include <ostream>

#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"
#include "tests/support/plain_redlock.h"

namespace lockbench::test {
namespace {

template <RedlockFlaws kFlaws>
const Descriptor& lock_with() {
  static const Descriptor lock{
      .name = "plain-redlock",
      .backend = "redis",
      .acquire_commands = {"SET", "EVALSHA release_if_token"},
      .release_commands = {"EVALSHA release_if_token"},
      .traits = {.expiry = Expiry::ttl, .release_check = OwnerCheck::atomic, .nodes = 2},
      .make = construct<PlainRedlock<kFlaws>>,
  };
  return lock;
}

struct Rejection {
  std::string_view property;
  const Descriptor& lock;
  std::string_view reason;  ///< none: it is sound
};

std::ostream& operator<<(std::ostream& out, const Rejection& rejection) {
  return out << rejection.property;
}

class BrokenRedlocks : public testing::TestWithParam<Rejection> {};

TEST_P(BrokenRedlocks, AreRejected) {
  const Property property = find_property(GetParam().property);
  ASSERT_TRUE(property.applies(GetParam().lock)) << "it would never be asked";
  const Impatience waits_in_vain;
  const std::string said = property.check(GetParam().lock);
  if (GetParam().reason.empty()) {
    EXPECT_EQ(said, "");
  } else {
    EXPECT_NE(said.find(GetParam().reason), std::string::npos) << "it said: \"" << said << "\"";
  }
}

// The last is sound: so that it is for its flaw that the first is rejected.
INSTANTIATE_TEST_SUITE_P(
    All, BrokenRedlocks,
    testing::Values(Rejection{"NoLeaseIsPastItsValidity",
                              lock_with<RedlockFlaws{.ignores_validity = true}>(),
                              "past its validity"},
                    Rejection{"RefusingMajorityGrantsNothing",
                              lock_with<RedlockFlaws{.minority_wins = true}>(), "gave acquired"},
                    Rejection{"NoLeaseIsPastItsValidity", lock_with<RedlockFlaws{}>(), ""}));

}  // namespace
}  // namespace lockbench::test
