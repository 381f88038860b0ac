#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

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

TEST(EtcdAnswers, ALeaseHasATtlThatCanBeReckonedWith) {
  etcdserverpb::LeaseGrantResponse response;
  response.set_id(7);
  for (const std::int64_t ttl :
       {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
        std::int64_t{9'223'372'037}, std::numeric_limits<std::int64_t>::max()}) {
    response.set_ttl(ttl);
    EXPECT_FALSE(read_grant(response)) << ttl;
  }
  response.set_ttl(60);
  EXPECT_EQ(read_grant(response)->ttl, seconds(60));
  response.set_id(0);
  EXPECT_FALSE(read_grant(response));
}

TEST(EtcdAnswers, ATokenIsWhatAHeaderCanCarry) {
  EXPECT_TRUE(is_token("oDRNvvPPGtxHCsAu.12"));
  for (const std::string_view text : {"", "a b", "a\nb", "a\x1b", "\xc3\xa4"}) {
    EXPECT_FALSE(is_token(text)) << text;
  }
  EXPECT_FALSE(is_token(std::string(10'000, 'x')));
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
