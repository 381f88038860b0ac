#include "tests/unit/strategies/renewal_fixture.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;

class QuorumRenewalTest : public RenewalTest {
 protected:
  QuorumRenewalTest() {
    RenewalOrder made = order("k");
    made.channels = {"one", "two", "three"};
    made.quorum = 2;
    made.drift = 100ms;
    for (const std::string& name : made.channels) nodes_.push_back(&store(name));
    state_ = made.state;
    kept_ = scheduler_.keep(std::move(made));
  }
  std::vector<FakeRenewalStore*> nodes_;
  std::shared_ptr<LeaseState> state_;
  std::shared_ptr<Renewal> kept_;
};

TEST_F(QuorumRenewalTest, AMajorityRenewsFromTheFirstRequestLessDrift) {
  for (FakeRenewalStore* node : nodes_) node->set_round_trip(50ms);
  nodes_[1]->answer_with(RenewalAnswer::failed);
  run(3s);
  EXPECT_EQ(state_->valid_until(), start_ + 3s + 9s - 100ms);
  EXPECT_EQ(reports_.all.front().outcome, RenewalAnswer::renewed);
  EXPECT_EQ(reports_.all.front().commands, 3) << "each node's is one";
}

TEST_F(QuorumRenewalTest, AMinorityIsTriedAgain) {
  nodes_[0]->answer_with(RenewalAnswer::failed);
  nodes_[2]->answer_with(RenewalAnswer::not_owner);
  run(4s);
  EXPECT_EQ(state_->valid_until(), start_ + 9s);
  EXPECT_EQ(state_->lost_at(), std::nullopt);
  EXPECT_GE(reports_.all.size(), 2U);
  nodes_[0]->answer_with(RenewalAnswer::renewed);
  run(1s);
  EXPECT_GT(state_->valid_until(), start_ + 12s);
}

TEST_F(QuorumRenewalTest, ARefusalByTheMajorityLosesTheLease) {
  nodes_[0]->answer_with(RenewalAnswer::not_owner);
  nodes_[2]->answer_with(RenewalAnswer::not_owner);
  run(4s);
  EXPECT_EQ(state_->lost_at(), start_ + 3s);
  EXPECT_EQ(scheduler_.kept(), 0U);
}
}  // namespace
}  // namespace lockbench
