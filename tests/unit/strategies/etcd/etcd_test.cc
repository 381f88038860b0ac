#include <gtest/gtest.h>

#include "strategies/etcd/client/channel.h"
#include "strategies/etcd/lock.h"

namespace lockbench::etcd {
namespace {

using std::chrono::seconds;

TEST(EtcdEndpoint, NamesAreLookedUpAndAddressesAreNot) {
  const Endpoint endpoint = parse_endpoint("db:1,127.0.0.1:2,[::1]:3").value();
  EXPECT_EQ(grpc_target(endpoint.hosts[0]), "dns:///db:1");
  EXPECT_EQ(grpc_target(endpoint.hosts[1]), "ipv4:127.0.0.1:2");
  EXPECT_EQ(grpc_target(endpoint.hosts[2]), "ipv6:[::1]:3");
}

/// The range of a prefix contains all keys that begin with it, and no key of another lock.
TEST(EtcdKeys, OfALockShareAPrefixWithNoOther) {
  const std::string prefix = "lock{1}/";
  const std::string end = end_of_prefix(prefix);
  const auto within = [&](const std::string& key) { return prefix <= key && key < end; };
  EXPECT_TRUE(within("lock{1}/0123"));
  EXPECT_TRUE(within(queue_of("lock{1}") + letter_of(Mode::shared) + "ff"));
  EXPECT_FALSE(within("lock{1}"));
  EXPECT_FALSE(within("lock{10}/0123"));
  EXPECT_FALSE(within("lock{1}0"));
  EXPECT_FALSE(within("lock{0}/0123"));
}

TEST(Jeopardy, LastsFromTheEndOfValidityForTheGracePeriod) {
  constexpr seconds kTtl{10}, kGrace{4};
  constexpr Duration kTick{1};
  const TimePoint begun{};
  LeaseState session(begun + kTtl, begun);
  const auto after = [&](Duration time) { return standing_of(session, begun + time, kGrace); };
  using enum SessionStanding;
  for (const auto& [time, standing] :
       std::vector<std::pair<Duration, SessionStanding>>{{Duration(), safe},
                                                         {kTtl - kTick, safe},
                                                         {kTtl, jeopardy},
                                                         {kTtl + kGrace - kTick, jeopardy},
                                                         {kTtl + kGrace, expired}}) {
    EXPECT_EQ(after(time), standing) << time.count();
  }
  EXPECT_EQ(standing_of(session, begun + kTtl, {}), expired) << "without grace";
  session.extend(begun + 2 * kTtl, begun + kTtl);
  EXPECT_EQ(after(kTtl), safe) << "the store has confirmed it";
  EXPECT_EQ(after(2 * kTtl), jeopardy);
  session.mark_lost(begun + kTtl);
  session.extend(begun + 3 * kTtl, begun + kTtl);
  EXPECT_EQ(after(kTtl), expired) << "a lost session stays lost";
}

}  // namespace
}  // namespace lockbench::etcd
