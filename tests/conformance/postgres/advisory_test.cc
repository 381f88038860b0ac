#include <gmock/gmock.h>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/postgres/postgres_test_store.h"

namespace lockbench::test {
namespace {

/// Advisory locks of a session that were granted by a statement which then failed: its fencing
/// number cannot be drawn any more.
class AdvisoryErrors : public testing::TestWithParam<milliseconds> {
 protected:
  AcquireResult acquire_in_error(const std::string& key) {
    PostgresProbe probe = shared_postgres().probe();
    probe.ask(fmt::format("SELECT setval('{}.fencing', 1000)", kSchema));
    probe.ask(fmt::format("ALTER SEQUENCE {}.fencing MAXVALUE 1000", kSchema));
    AcquireResult result = client_->acquire(key, GetParam());
    probe.ask(fmt::format("ALTER SEQUENCE {}.fencing NO MAXVALUE", kSchema));
    EXPECT_EQ(result.outcome, AcquireOutcome::failed);
    EXPECT_THAT(result.reason, testing::HasSubstr("maximum value of sequence"));
    return result;
  }

  Bench bench_{*find_strategy("postgres-advisory")};
  std::unique_ptr<Client> client_ = bench_.client();
  std::unique_ptr<Client> other_ = bench_.client();
};

TEST_P(AdvisoryErrors, LeaveNoLockThatNobodyHolds) {
  warm_up(*client_, bench_.key());
  acquire_in_error(bench_.key());
  EXPECT_TRUE(bench_.becomes_free());
  EXPECT_TRUE(client_->try_once(bench_.key() + ":1").lease) << "the client goes on";
}

TEST_P(AdvisoryErrors, DoNotEndTheOtherLocksOfTheirSession) {
  const Lease held = granted(client_->try_once(bench_.key() + ":1"));
  acquire_in_error(bench_.key());
  EXPECT_TRUE(bench_.becomes_free());
  acquire_in_error(bench_.key() + ":1");
  EXPECT_EQ(other_->try_once(bench_.key() + ":1").outcome, AcquireOutcome::refused);
  EXPECT_FALSE(held.state->lost_at());
  EXPECT_EQ(client_->release(held), ReleaseOutcome::released);
  EXPECT_TRUE(other_->try_once(bench_.key() + ":1").lease) << "however often it was granted";
}

/// Though the server frees whatever its session has on that key.
TEST(AdvisoryLeases, GiveALockBackOnce) {
  Bench bench(*find_strategy("postgres-advisory"));
  const auto client = bench.client();
  const Lease spent = granted(client->try_once(bench.key()));
  ASSERT_EQ(client->release(spent), ReleaseOutcome::released);
  const Lease held = granted(client->try_once(bench.key()));
  EXPECT_EQ(client->release(spent), ReleaseOutcome::not_owner);
  EXPECT_TRUE(bench.is_held()) << "another lease's lock was freed";
  EXPECT_EQ(client->release(held), ReleaseOutcome::released);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutPatience, AdvisoryErrors,
                         testing::Values(milliseconds(0), milliseconds(5000)));

}  // namespace
}  // namespace lockbench::test
