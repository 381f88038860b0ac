#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <random>
#include <tuple>

#include "watch/sources/zookeeper_locks.h"

namespace lockbench::watch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimePoint kLookedAt{std::chrono::seconds(1000)};

TEST(SequenceNodes, OfKnownLibraries) {
  const std::string uuid = "550e8400-e29b-41d4-a716-446655440000";
  const std::string plain = "0123456789abcdef0123456789abcdef";
  struct Case {
    std::string name, maker;
    std::uint64_t sequence;
    bool shared;
  };
  for (const Case& one :
       {Case{"_c_" + uuid + "-lock-0000000042", uuid, 42, false},
        Case{"_c_" + uuid + "-__READ__0000000002", uuid, 2, true},
        Case{"_c_" + uuid + "-__WRIT__0000000002", uuid, 2, false},
        Case{plain + "__lock__0000000007", plain, 7, false},
        Case{plain + "__rlock__0000000007", plain, 7, true},
        Case{plain + "0000000007", plain, 7, false}, Case{"lock-0000000001", "", 1, false}}) {
    const auto node = read_sequence_node(one.name);
    ASSERT_TRUE(node) << one.name;
    EXPECT_EQ(std::tie(node->maker, node->sequence, node->shared),
              std::tie(one.maker, one.sequence, one.shared))
        << one.name;
  }
  for (const char* const name : {"", "lock", "lock-1", "lock-000000001x", "lock-00000 0001"}) {
    EXPECT_FALSE(read_sequence_node(name)) << name;
  }
}

TEST(ZookeeperLocks, TheLowestNumberHoldsWhateverTheNames) {
  ZookeeperLocks locks(10);
  const auto listed = locks.listed(
      "/l", {"z-lock-0000000002", "_c_0-lock-0000000007", "config", "lock-0000000003"}, 9, true);
  EXPECT_THAT(listed.others, ElementsAre("config"));
  EXPECT_EQ(listed.contenders.size(), 3U);
  locks.owned("/l", "z-lock-0000000002", 0x1f, std::nullopt);
  const auto seen = locks.settle("/l", kLookedAt, true);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].holders.front().owner, "1f");
  EXPECT_EQ(seen[0].fence, 2U);
  EXPECT_EQ(seen[0].waiters, 2U);
  EXPECT_EQ(seen[0].changes, 0U);
  EXPECT_THAT(locks.settle("/l", kLookedAt, false), IsEmpty()) << "nothing has changed";
}

TEST(ZookeeperLocks, ReadersHoldTogetherBeforeTheFirstWriter) {
  ZookeeperLocks locks(10);
  locks.listed(
      "/l",
      {"__rlock__0000000001", "__rlock__0000000002", "__lock__0000000003", "__rlock__0000000004"},
      4, true);
  const auto seen = locks.settle("/l", kLookedAt, true);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].holders.size(), 2U);
  EXPECT_TRUE(seen[0].holders.front().shared);
  EXPECT_EQ(seen[0].waiters, 2U);
}

TEST(ZookeeperLocks, ANodeWithoutASessionIsNoContender) {
  ZookeeperLocks locks(10);
  locks.listed("/l", {"order-0000000001"}, 1, true);
  locks.owned("/l", "order-0000000001", 0, std::nullopt);
  EXPECT_THAT(locks.settle("/l", kLookedAt, true), IsEmpty());
  EXPECT_THAT(locks.listed("/l", {"order-0000000001"}, 1, false).contenders, IsEmpty());
}

TEST(ZookeeperLocks, ContendersBetweenTwoListsAreMissed) {
  ZookeeperLocks locks(10);
  locks.listed("/l", {"lock-0000000001"}, 2, true);
  locks.settle("/l", kLookedAt, true);
  EXPECT_EQ(locks.take_missed(), 0U) << "before the watch";
  locks.listed("/l", {"lock-0000000005", "lock-0000000006"}, 7, false);
  EXPECT_EQ(locks.take_missed(), 3U);
  const auto seen = locks.settle("/l", kLookedAt, false);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen.front().missed_holdings, 3U);
  locks.listed("/l", {"lock-0000000005", "lock-0000000006"}, 8, false);
  EXPECT_EQ(locks.take_missed(), 1U) << "nothing else has changed";
}

TEST(ZookeeperLocks, ContendersBeforeTheFirstThatWasSeenAreMissed) {
  ZookeeperLocks locks(10);
  locks.listed("/l", {}, 4, true);
  locks.listed("/l", {}, 5, false);
  EXPECT_EQ(locks.take_missed(), 1U);
  locks.listed("/new", {"lock-0000000002"}, 3, false);
  locks.settle("/new", kLookedAt, false);
  EXPECT_EQ(locks.take_missed(), 2U);
}

TEST(ZookeeperLocks, NodesThatAreNoLocksTellOfNoContenders) {
  ZookeeperLocks locks(10);
  std::uint64_t made = 0;
  for (const char* job : {"job-1700000000", "job-1800000000"}) {
    locks.listed("/l", {job}, made += 3, false);
    locks.owned("/l", job, 0, std::nullopt);
    EXPECT_THAT(locks.settle("/l", kLookedAt, false), IsEmpty());
  }
  EXPECT_EQ(locks.take_missed(), 0U);
}

TEST(ZookeeperLocks, WhoGivesItBackAndTakesItAgainBetweenTwoListsHasFreedIt) {
  ZookeeperLocks locks(10);
  locks.listed("/l", {"lock-0000000001"}, 1, true);
  locks.owned("/l", "lock-0000000001", 7, std::nullopt);
  locks.settle("/l", kLookedAt, true);
  locks.listed("/l", {"lock-0000000002"}, 2, false);
  locks.owned("/l", "lock-0000000002", 7, std::nullopt);
  const auto seen = locks.settle("/l", kLookedAt, false);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_THAT(seen[0].holders, IsEmpty());
  EXPECT_EQ(seen[1].holders.front().owner, "7");
  // A new waiter does not free the lock.
  locks.listed("/l", {"lock-0000000002", "lock-0000000003"}, 3, false);
  EXPECT_EQ(locks.settle("/l", kLookedAt, false).size(), 1U);
}

/// Curator's InterProcessSemaphoreV2 with two permits.
TEST(ZookeeperLocks, PermitsAreHeldTogetherAndTheQueueBesideThemWaits) {
  const std::string uuid = "550e8400-e29b-41d4-a716-446655440000";
  const auto node = [&](const char* kind, int number) {
    return fmt::format("_c_{}-{}-000000000{}", uuid, kind, number);
  };
  ZookeeperLocks locks(10);
  std::map<std::string, int> made;
  const auto list = [&](const std::string& path, const std::vector<std::string>& names) {
    for (const std::string& name : names) made[path] = std::max(made[path], name.back() - '0' + 1);
    const auto ever = static_cast<std::uint64_t>(made[path]);
    for (const std::string& name : locks.listed(path, names, ever, false).contenders) {
      locks.owned(path, name, name.back() - '0' + 1, std::nullopt);
    }
    return locks.settle(path, kLookedAt, false);
  };
  // Each client takes its place in the queue, makes its permit and leaves the queue.
  ASSERT_EQ(list("/s/locks", {node("lock", 0)}).size(), 1U) << "it may be a lock so far";
  auto seen = list("/s/leases", {node("lease", 0)});
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].lock, "/s/locks");
  EXPECT_THAT(seen[0].holders, IsEmpty()) << "it is no lock by itself";
  seen = list("/s/locks", {node("lock", 1)});
  seen = list("/s/leases", {node("lease", 0), node("lease", 1)});
  seen = list("/s/locks", {node("lock", 2)});
  EXPECT_EQ(seen.back().lock, "/s/leases");
  EXPECT_EQ(seen.back().shape, Shape::permits);
  EXPECT_EQ(seen.back().holders.size(), 2U);
  EXPECT_EQ(seen.back().waiters, 1U);
  // The third client has made its node, but there are only two permits.
  seen = list("/s/leases", {node("lease", 0), node("lease", 1), node("lease", 2)});
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].holders.size(), 2U);
  EXPECT_EQ(seen[0].waiters, 1U);
  seen = list("/s/leases", {node("lease", 1), node("lease", 2)});
  EXPECT_EQ(seen.back().holders.size(), 1U);
  seen = list("/s/locks", {});
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].lock, "/s/leases");
  EXPECT_EQ(seen[0].holders.size(), 2U);
  EXPECT_EQ(seen[0].waiters, 0U);
  EXPECT_EQ(locks.take_missed(), 0U);
}

TEST(ZookeeperLocks, ANodeThatIsGoneIsFree) {
  ZookeeperLocks locks(10);
  locks.listed("/", {"l"}, 1, true);
  locks.listed("/l", {"lock-0000000001"}, 1, true);
  locks.settle("/l", kLookedAt, true);
  const auto seen = locks.gone("/l", kLookedAt);
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->holders.empty());
  EXPECT_THAT(locks.listed("/", {"l"}, 2, false).others, ElementsAre("l")) << "made again";
}

TEST(ZookeeperLocks, AnEphemeralNodeIsALockByItself) {
  ZookeeperLocks locks(10);
  locks.listed("/l", {}, 0, true);
  ASSERT_TRUE(locks.may_be_single("/l"));
  const auto held = locks.single("/l", 0x1f, 5, std::nullopt, kLookedAt, false);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].holders.front().owner, "1f");
  EXPECT_EQ(held[0].fence, 5U);
  EXPECT_FALSE(held[0].waiters) << "they leave no trace";
  EXPECT_THAT(locks.single("/l", 0x1f, 5, std::nullopt, kLookedAt, false), IsEmpty());
  const auto taken_again = locks.single("/l", 0x1f, 9, std::nullopt, kLookedAt, false);
  ASSERT_EQ(taken_again.size(), 2U);
  EXPECT_THAT(taken_again[0].holders, IsEmpty());
  const auto gone = locks.gone("/l", kLookedAt);
  ASSERT_TRUE(gone);
  EXPECT_THAT(gone->holders, IsEmpty());
}

TEST(ZookeeperLocks, APersistentNodeIsNoLockByItself) {
  ZookeeperLocks locks(10);
  locks.listed("/l", {}, 0, true);
  EXPECT_THAT(locks.single("/l", 0, 5, std::nullopt, kLookedAt, true), IsEmpty());
  EXPECT_FALSE(locks.may_be_single("/l"));
  EXPECT_FALSE(locks.gone("/l", kLookedAt));
}

TEST(ZookeeperLocks, NoMoreNodesAreFollowedThanThereIsRoomFor) {
  ZookeeperLocks locks(2);
  for (const char* path : {"/a", "/b", "/c"}) locks.listed(path, {"lock-0000000001"}, 1, true);
  EXPECT_EQ(locks.size(), 2U);
  EXPECT_EQ(locks.take_unfollowed(), 1U);
}

TEST(ZookeeperLocks, AnyListsAreTaken) {
  std::mt19937 random(7);  // NOLINT: the same each time
  ZookeeperLocks locks(50);
  for (int round = 0; round < 5000; ++round) {
    const std::string path = "/" + std::to_string(random() % 60);
    std::vector<std::string> children;
    for (auto i = random() % 6; i > 0; --i) {
      std::string name(random() % 14, static_cast<char>('0' + random() % 12));
      if (random() % 2 == 0) name += "000000000" + std::to_string(random() % 10);
      children.push_back(std::move(name));
    }
    for (const auto& name :
         locks.listed(path, children, random() % 9, random() % 2 == 0).contenders) {
      locks.owned(path, name, static_cast<std::int64_t>(random() % 3), std::nullopt);
    }
    const auto seen = locks.settle(path, kLookedAt, false);
    for (const Sighting& one : seen) EXPECT_EQ(one.lock, path);
    if (random() % 8 == 0) locks.gone(path, kLookedAt);
    EXPECT_LE(locks.size(), 50U);
  }
}

}  // namespace
}  // namespace lockbench::watch
