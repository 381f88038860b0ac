#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "hazards/simulated/venue.h"
#include "simulate/simulation.h"
#include "tests/hazards/support/fixtures.h"
#include "tests/support/test_names.h"

// Each verdict is shown to be reachable by a defective lock, and to differ for a correct one.

namespace lockbench::hazards::test {
namespace {

struct Mutation {
  std::string_view scenario, mutant;
  HazardOutcome seen, sound;

  friend std::ostream& operator<<(std::ostream& out, const Mutation& mutation) {
    return out << mutation.scenario << " / " << mutation.mutant;
  }
};

class Mutations : public testing::TestWithParam<Mutation> {};

TEST_P(Mutations, ChangeTheVerdictOfThePlayThatConcernsThem) {
  const auto& [name, mutant, seen, sound] = GetParam();
  const Cell cell = undisturbed(name, mutant);
  ASSERT_TRUE(cell.played()) << description_of(cell);
  EXPECT_EQ(to_string(*cell.observed), to_string(seen)) << description_of(cell);
  EXPECT_FALSE(cell.agrees()) << "it declares what a correct lock would show";
  EXPECT_EQ(to_string(cell.expected), to_string(sound));
}

/// The first three send what no lock of ours does and the model does not know: DECR, PERSIST and
/// redis.set_repl. The last one errs only if the message that wakes it is read before its clock.
constexpr std::array<std::string_view, 4> kNotSimulated{
    "test-counts-down", "test-marks-first", "test-unreplicated", "test-counts-its-wait"};

TEST_P(Mutations, ChangeTheVerdictOfASimulatedPlayToo) {
  const auto& [name, mutant, seen, sound] = GetParam();
  if (!simulate::why_not(strategy(mutant)).empty()) return;
  if (std::ranges::count(kNotSimulated, mutant) > 0) return;
  const Cell cell = play_simulated(scenario(name), strategy(mutant), 1);
  ASSERT_TRUE(cell.played()) << description_of(cell);
  if (cell.observed == HazardOutcome::not_played) return;
  EXPECT_EQ(to_string(*cell.observed), to_string(seen)) << description_of(cell);
  EXPECT_EQ(to_string(cell.expected), to_string(sound));
}

using enum HazardOutcome;

INSTANTIATE_TEST_SUITE_P(
    , Mutations,
    testing::Values(
        Mutation{"late-release", "test-unchecked-release", foreign_release, safe},
        Mutation{"release-race", "test-unchecked-release", foreign_release, safe},
        Mutation{"release-without-holding", "test-unchecked-release", foreign_release, safe},
        Mutation{"lost-answer-release", "test-unchecked-release", foreign_release, safe},
        Mutation{"holder-clock-behind", "test-unchecked-release", foreign_release, safe},
        Mutation{"foreign-renewal", "test-unchecked-renewal", foreign_renewal, safe},
        Mutation{"lost-answer-acquire", "test-untidy", stuck, safe},
        Mutation{"pause-holding-fenced", "test-same-number", lost_update, safe},
        Mutation{"pause-holding-fenced", "test-counts-down", unavailable, safe},
        Mutation{"crash-waiting", "test-waits-for-the-dead", stuck, recovers},
        Mutation{"crash-waiting", "test-waits-out-the-dead", stuck, recovers},
        Mutation{"lost-notification", "test-wakes-late", stuck, recovers},
        Mutation{"lost-notification", "test-trusts-the-message", stuck, recovers},
        Mutation{"getset-rewrite", "test-knows-its-own-time-only", stuck, safe},
        Mutation{"crash-mid-acquire", "test-eternal", stuck, recovers},
        Mutation{"crash-holding", "test-eternal", stuck, recovers},
        Mutation{"host-crash", "test-eternal", stuck, recovers},
        Mutation{"runaway-holder", "test-eternal", stuck, recovers},
        Mutation{"runaway-holder-capped", "test-endless", stuck, recovers},
        Mutation{"session-expiry", "test-zookeeper-same-number", lost_update, safe},
        Mutation{"session-expiry", "test-etcd-same-number", lost_update, safe},
        Mutation{"session-expiry", "test-postgres-same-number", lost_update, safe},
        Mutation{"owner-collision", "test-confused", double_grant, safe},
        Mutation{"reentry", "test-confused", double_grant, self_deadlock},
        Mutation{"contention", "test-blind", lost_update, safe},
        Mutation{"several-processes", "test-blind", double_grant, safe},
        Mutation{"client-clock-ahead", "test-blind", double_grant, safe},
        Mutation{"overrun-holding", "test-forgets-to-renew", known_loss, safe},
        Mutation{"overrun-holding", "test-never-doubts", double_grant, known_loss},
        Mutation{"overrun-holding-late", "test-never-doubts", double_grant, known_loss},
        Mutation{"partition-holder", "test-never-doubts", double_grant, known_loss},
        Mutation{"partition-holder-late", "test-never-doubts", double_grant, known_loss},
        Mutation{"overrun-holding-fenced", "test-same-number", lost_update, safe},
        Mutation{"partition-holder-fenced", "test-same-number", lost_update, safe},
        Mutation{"partition-holder-fenced", "test-counts-down", unavailable, safe},
        Mutation{"member-isolated", "test-etcd-never-doubts", double_grant, known_loss},
        Mutation{"member-isolated-fenced", "test-etcd-same-number", lost_update, safe},
        Mutation{"failover-fenced", "test-etcd-same-number", lost_update, safe},
        Mutation{"failover-fenced", "test-etcd-counts-down", unavailable, safe},
        Mutation{"failover-acknowledged", "test-unreplicated", double_grant, safe},
        Mutation{"reshard-holding", "test-ignores-redirects", stuck, safe},
        Mutation{"lock-delay", "test-chubby-hasty", double_grant, safe},
        Mutation{"pooler-leaked-lock", "test-advisory-trusting", stuck, refused},
        Mutation{"pooler-reentry", "test-advisory-trusting", double_grant, refused},
        Mutation{"overrun-holding", "test-skips-the-recheck", double_grant, safe},
        Mutation{"redlock-slow-nodes", "test-redlock-late", double_grant, refused},
        Mutation{"redlock-majority-down", "test-redlock-minority", safe, unavailable},
        Mutation{"redlock-minority-down", "test-redlock-unanimous", unavailable, safe},
        Mutation{"redlock-minority-frozen", "test-redlock-unanimous", unavailable, safe},
        Mutation{"redlock-node-restart-delayed", "test-redlock-minority", double_grant, safe},
        Mutation{"redlock-split-vote", "test-redlock-hoarding", stuck, safe},
        Mutation{"restart-fenced", "test-same-number", lost_update, unavailable},
        Mutation{"renew-zero", "test-forgets-to-renew", double_grant, safe},
        Mutation{"timeout-but-granted", "test-turns-its-back", stuck, safe},
        Mutation{"refused-residue", "test-waits-for-the-dead", stuck, safe},
        Mutation{"cancelled-release", "test-marks-first", stuck, safe},
        Mutation{"crash-mid-release", "test-marks-first", stuck, recovers},
        Mutation{"crash-mid-renew", "test-marks-first", stuck, recovers},
        Mutation{"renewal-stalled", "test-renewed-never-doubts", double_grant, known_loss},
        Mutation{"dead-waiters", "test-waits-out-the-dead", stuck, recovers},
        Mutation{"pause-waiting", "test-waits-for-the-dead", stuck, recovers},
        Mutation{"pause-waiting", "test-counts-its-wait", double_grant, recovers},
        Mutation{"long-wait", "test-loses-its-place", stuck, recovers},
        Mutation{"idle-session-timeout", "test-postgres-same-number", double_grant, safe},
        Mutation{"crash-work-continues", "test-long-lease", safe, double_grant},
        Mutation{"rolling-restart", "test-etcd-holds-nothing", double_grant, safe},
        Mutation{"leader-frozen", "test-etcd-holds-nothing", double_grant, safe},
        Mutation{"crash-holding-leader-change", "test-etcd-lingers", stuck, recovers},
        Mutation{"durability-second", "test-one-of-five", double_grant, safe},
        // A lock that never runs out does not get to the question of these.
        Mutation{"overrun-holding", "test-eternal", not_applicable, known_loss},
        Mutation{"partition-holder-late", "test-eternal", not_applicable, known_loss},
        Mutation{"pause-holding", "test-eternal", not_applicable, lost_update},
        Mutation{"late-release", "test-eternal", not_applicable, safe},
        Mutation{"release-race", "test-eternal", not_applicable, safe},
        Mutation{"foreign-renewal", "test-eternal", not_applicable, safe},
        Mutation{"store-clock-jump", "test-eternal", safe, double_grant}),
    [](const auto& tested) {
      return lockbench::test::test_name_of(std::string(tested.param.scenario) + "_" +
                                           std::string(tested.param.mutant));
    });

TEST(Verdicts, OfSoundLocksAreWhatTheyDeclare) {
  const std::map<std::string_view, std::vector<std::string_view>> plays{
      {"test-sound",
       {"late-release", "foreign-renewal", "owner-collision", "lost-answer-acquire",
        "crash-holding", "shard-failover", "reshard-holding", "shard-lost"}},
      {"test-redlock",
       {"redlock-slow-nodes", "redlock-majority-down", "redlock-split-vote",
        "redlock-node-restart-empty", "redlock-minority-down", "store-restart-empty"}}};
  for (const auto& [lock, names] : plays) {
    for (const std::string_view name : names) {
      const Cell cell = undisturbed(name, lock);
      EXPECT_TRUE(cell.agrees()) << description_of(cell);
    }
  }
}

TEST(Verdicts, SayThatAFaultStruckOneNodeOfSeveral) {
  for (const std::string_view name : {"store-restart-empty", "rogue-delete"}) {
    const Cell quorum = undisturbed(name, "test-redlock");
    EXPECT_NE(quorum.reason.find("one of its 5 nodes"), std::string::npos)
        << description_of(quorum);
    EXPECT_NE(description_of(quorum).rfind("one of its 5 nodes"),
              description_of(quorum).find("one of its 5 nodes"))
        << "the timeline says it too";
    const Cell single = undisturbed(name, "test-sound");
    EXPECT_NE(single.reason.find("the store"), std::string::npos) << description_of(single);
  }
}

TEST(Stages, OfAQuorumAreFiveServersEachWithALineOfItsOwn) {
  const auto store = store_for("redlock", Setup::volatile_);
  const auto ports = store->ports();
  EXPECT_EQ(std::set(ports.begin(), ports.end()).size(), 5U);
  const auto urls = store->endpoints({1, 2, 3, 4, 5}).at("redis");
  ASSERT_EQ(urls.size(), 5U);
  EXPECT_TRUE(urls[4].ends_with("@127.0.0.1:5"));
  EXPECT_TRUE(store->endpoints().at("redis")[2].ends_with(fmt::format("@127.0.0.1:{}", ports[2])));
}

}  // namespace
}  // namespace lockbench::hazards::test
