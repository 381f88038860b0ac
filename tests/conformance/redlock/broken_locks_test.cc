#include "tests/conformance/common/rejection.h"
#include "tests/support/plain_redlock.h"

namespace lockbench::test {
namespace {

template <RedlockFlaws kFlaws>
Descriptor lock_with() {
  return {
      .name = "plain-redlock",
      .backend = "redis",
      .acquire_commands = {"SET", "EVALSHA release_if_token"},
      .release_commands = {"EVALSHA release_if_token"},
      .traits = {.expiry = Expiry::ttl, .release_check = OwnerCheck::atomic, .nodes = 2},
      .make = construct<PlainRedlock<kFlaws>>,
  };
}

class BrokenRedlocks : public testing::TestWithParam<Rejection> {};

TEST_P(BrokenRedlocks, AreRejected) { expect_rejection(GetParam()); }

// The last one is sound, to show that the others are rejected for their flaws.
INSTANTIATE_TEST_SUITE_P(
    All, BrokenRedlocks,
    testing::Values(Rejection{"NoLeaseIsPastItsValidity",
                              lock_with<RedlockFlaws{.ignores_validity = true}>(),
                              "past its validity"},
                    Rejection{"RefusingMajorityGrantsNothing",
                              lock_with<RedlockFlaws{.minority_wins = true}>(), "gave acquired"},
                    Rejection{"NoLeaseIsPastItsValidity", lock_with<RedlockFlaws{}>(), ""}),
    rejection_name);

}  // namespace
}  // namespace lockbench::test
