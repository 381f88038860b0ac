#include <gmock/gmock.h>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/etcd/etcd_test_store.h"

namespace lockbench::test {
namespace {

/// Places in queues that could not be left, of a client that holds another lock on the same
/// session, which therefore goes on.
class EtcdPlaces : public testing::TestWithParam<const char*> {
 protected:
  std::string key(const char* which) const { return bench_.key() + ":" + which; }
  static auto below(const std::string& key) { return shared_etcd().probe().keys(key); }

  Bench bench_{*find_strategy(GetParam())};
  std::unique_ptr<Client> client_ = bench_.client();
  std::unique_ptr<Client> other_ = bench_.client();
};

TEST_P(EtcdPlaces, ThatCouldNotBeLeftAreReportedAndLeftWithTheNextLock) {
  const Lease held = granted(client_->try_once(key("1")));
  const Lease others = granted(other_->try_once(key("2")));
  const std::size_t alone = below(key("2")).size();
  client_->faults().drop_command(2);  // the first queues
  const AcquireResult refused = client_->try_once(key("2"));
  EXPECT_EQ(refused.outcome, AcquireOutcome::unknown);
  EXPECT_THAT(refused.reason, testing::HasSubstr(shared_endpoints().front()));
  EXPECT_EQ(below(key("2")).size(), alone + 1);
  EXPECT_TRUE(client_->try_once(key("3")).lease);
  EXPECT_EQ(below(key("2")).size(), alone);
  EXPECT_EQ(client_->release(held), ReleaseOutcome::released);
}

TEST_P(EtcdPlaces, ThatMayHaveComeToBeAreLeftWithTheNextLock) {
  const Lease held = granted(client_->try_once(key("1")));
  client_->faults().drop_answer(1);
  EXPECT_EQ(client_->try_once(key("2")).outcome, AcquireOutcome::unknown);
  EXPECT_FALSE(below(key("2")).empty());
  EXPECT_TRUE(client_->try_once(key("3")).lease);
  EXPECT_TRUE(below(key("2")).empty());
  EXPECT_EQ(client_->release(held), ReleaseOutcome::released);
}

TEST_P(EtcdPlaces, ThatWereHeldAreLeftWithTheNextLock) {
  const AcquireResult first = client_->try_once(key("1"));
  const AcquireResult second = client_->try_once(key("2"));
  ASSERT_TRUE(first.lease && second.lease);
  client_->faults().drop_command(1);
  EXPECT_EQ(client_->release(*second.lease), ReleaseOutcome::failed);
  EXPECT_EQ(other_->try_once(key("2")).outcome, AcquireOutcome::refused);
  EXPECT_TRUE(client_->try_once(key("3")).lease);
  EXPECT_TRUE(other_->try_once(key("2")).lease);
  EXPECT_EQ(client_->release(*first.lease), ReleaseOutcome::released);
}

TEST_P(EtcdPlaces, OfItsOwnAreNotWaitedBehind) {
  const Lease held = granted(client_->try_once(key("1")));
  client_->faults().drop_answer(1);
  EXPECT_EQ(client_->try_once(key("2")).outcome, AcquireOutcome::unknown);
  client_->faults().drop_command(1);  // nor can it be left before the next is asked for
  // On a new session, by whose TTL it looks again at the latest.
  const AcquireResult again = client_->acquire(key("2"), patience(), seconds(1));
  EXPECT_TRUE(again.lease) << again.reason;
  EXPECT_FALSE(held.state->lost_at()) << "it might have gone with its session";
  EXPECT_EQ(client_->release(held), ReleaseOutcome::released);
}

INSTANTIATE_TEST_SUITE_P(All, EtcdPlaces, testing::Values("etcd", "chubby"));

}  // namespace
}  // namespace lockbench::test
