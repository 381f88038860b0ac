#include <gtest/gtest.h>

#include <iostream>
#include <thread>

#include "hazards/play.h"
#include "tests/hazards/support/fixtures.h"

// Times measured by hazard plays.

namespace lockbench::hazards::test {
namespace {

using namespace std::chrono_literals;

/// A store that is slow to end a session.
class SlowStore : public PrivateStore {
 public:
  explicit SlowStore(std::shared_ptr<PrivateStore> store)
      : PrivateStore("etcd", false, store->shortest_session()), store_(std::move(store)) {}

  Servers servers() const override { return store_->servers(); }
  void end_session(const std::string& key) override {
    store_->end_session(key);
    std::this_thread::sleep_for(3s);  // longer than the owner takes to notice
  }

 private:
  const std::shared_ptr<PrivateStore> store_;
};

TEST(BeliefGap, OfASessionBeginsNoLaterThanItsEnd) {
  auto store = server_pool().store(strategy("etcd"), Setup::shared);
  ASSERT_TRUE(store) << store.error().reason;
  Play play(server_pool(), std::make_shared<SlowStore>(*store), strategy("etcd"));
  scenario("session-expiry").play(play);
  EXPECT_GE(std::get<double>(play.evidence().at("belief_gap_seconds")), 0.0)
      << "the loss cannot be known before it happens";
}

TEST(Price, OfFrozenNodesIsByTheStrategysOwnPatience) {
  // Time for which other clients of a play wait for two nodes.
  const double patient = seconds(2 * ActorSettings{}.node_timeout.value());
  const Cell cell = play(server_pool(), scenario("redlock-minority-frozen"), strategy("redlock"));
  if (cell.disturbed) {
    std::cout << "inconclusive: " << cell.reason << "\n";
    return;
  }
  ASSERT_TRUE(cell.agrees()) << description_of(cell);
  EXPECT_LT(std::get<double>(cell.evidence.at("first_acquire_seconds_after")), patient);
}

}  // namespace
}  // namespace lockbench::hazards::test
