#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/postgres/postgres_test_store.h"

namespace lockbench::test {
namespace {

/// The lease is over by the time its grant is heard of.
AcquireResult acquire_late(bool may_give_back) {
  Bench bench(*find_strategy("postgres-lease"));
  const auto client = bench.client();
  warm_up(*client, bench.key());
  client->faults().next_answer_is_late(2 * kLongTtl);
  if (!may_give_back) client->faults().drop_command(2, 100);
  return client->try_once(bench.key());
}

TEST(LateGrants, AreGivenBack) {
  const AcquireResult late = acquire_late(true);
  EXPECT_EQ(late.outcome, AcquireOutcome::refused) << late.reason;
  EXPECT_THAT(shared_postgres().keys(), testing::IsEmpty());
}

TEST(LateGrants, ThatCannotBeGivenBackAreUnknown) {
  const AcquireResult late = acquire_late(false);
  EXPECT_EQ(late.outcome, AcquireOutcome::unknown);
  EXPECT_THAT(late.reason, testing::HasSubstr("127.0.0.1"));
  EXPECT_THAT(shared_postgres().keys(), testing::Not(testing::IsEmpty()));
}

}  // namespace
}  // namespace lockbench::test
