#include <fmt/format.h>
#include <gmock/gmock.h>

#include "deployment/failure.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/etcd/client/messages.h"
#include "testbed/servers/kinds.h"
#include "tests/integration/watch/sightings.h"
#include "tests/support/etcd_gateway.h"
#include "tests/support/servers.h"

namespace lockbench::watch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<testbed::Server> own_etcd() {
  return deployment::need(testbed::start_etcd(test::shared_testbed()));
}

/// The application whose locks are watched.
class EtcdClient {
 public:
  explicit EtcdClient(const std::string& url)
      : etcd_(*etcd::parse_endpoint(url), test::kPatience, *env_) {}

  etcd::LeaseId grant(std::int64_t seconds) { return value(etcd_.grant_lease(seconds, "")).id; }
  void revoke(etcd::LeaseId lease) {
    if (auto done = etcd_.revoke_lease(lease, ""); !done)
      throw std::runtime_error(done.error().message);
  }
  void put(const std::string& key, etcd::LeaseId lease, const std::string& text = "") {
    etcdserverpb::RequestOp write = etcd::put(key, lease);
    if (!text.empty()) write.mutable_request_put()->set_value(text);
    value(etcd_.transact("", {.then = {write}}));
  }
  void remove(const std::string& key) { value(etcd_.remove_key("", key)); }
  /// A key named as by etcd's own lock.
  static std::string queued(const std::string& lock, etcd::LeaseId lease) {
    return fmt::format("{}/{:x}", lock, static_cast<std::uint64_t>(lease));
  }
  static std::string owner(etcd::LeaseId lease) {
    return fmt::format("{:x}", static_cast<std::uint64_t>(lease));
  }

 private:
  template <class T>
  static T value(StoreResult<T> result) {
    if (!result) throw std::runtime_error(result.error().message);
    return *std::move(result);
  }

  std::unique_ptr<Env> env_ = make_system_env(1);
  etcd::Connection etcd_;
};

class WatchedEtcd : public testing::Test {
 protected:
  static testbed::Server& server() {
    static const std::unique_ptr<testbed::Server> shared = own_etcd();
    return *shared;
  }

  EtcdClient client_{server().url()};
  Sightings seen_;
};

TEST_F(WatchedEtcd, AQueueIsSeenInItsOrder) {
  const Running watch("etcd", server().url(), {.locks = {"queue/*"}}, seen_);
  const auto first = client_.grant(30), second = client_.grant(30), third = client_.grant(30);
  for (const auto lease : {first, second, third})
    client_.put(EtcdClient::queued("queue/a", lease), lease);
  const auto full = seen_.await("queue/a", [](const Sighting& one) { return one.waiters == 2; });
  ASSERT_TRUE(full);
  EXPECT_EQ(full->shape, Shape::etcd_queue);
  EXPECT_THAT(owners_in(full->holders), ElementsAre(EtcdClient::owner(first)));
  EXPECT_THAT(owners_in(*full->waiting),
              ElementsAre(EtcdClient::owner(second), EtcdClient::owner(third)));
  client_.remove(EtcdClient::queued("queue/a", first));
  const auto handed_on = seen_.await_held("queue/a", EtcdClient::owner(second));
  ASSERT_TRUE(handed_on);
  EXPECT_EQ(handed_on->ended, Ending::released);
  EXPECT_GE(handed_on->changes, 1U);
  // A waiter that gives up its place ends no holding.
  client_.revoke(third);
  ASSERT_TRUE(seen_.await(
      "queue/a", [](const Sighting& one) { return one.waiters == 0; }, handed_on->at));
  client_.revoke(second);
  ASSERT_TRUE(seen_.await_free("queue/a", handed_on->at));
}

TEST_F(WatchedEtcd, ManyHoldingsAreAllSeen) {
  constexpr int kHoldings = 200;
  const Running watch("etcd", server().url(), {.locks = {"many/*"}}, seen_);
  ASSERT_TRUE(seen_.comes([&] { return !seen_.facts_.store.empty(); }));
  EXPECT_EQ(seen_.facts_.accuracy, Accuracy::exact);
  const auto lease = client_.grant(60);
  client_.put("many/first", lease);
  ASSERT_TRUE(seen_.await_any("many/first"));
  for (int i = 0; i < kHoldings; ++i) {
    client_.put("many/a", lease);
    client_.remove("many/a");
  }
  int grants = 0;
  EXPECT_TRUE(seen_.comes([&] {
    grants = 0;
    int releases = 0;
    for (const Sighting& one : seen_.of_["many/a"]) {
      if (one.changes > 0) ++(one.holders.empty() ? releases : grants);
    }
    return grants == kHoldings && releases == kHoldings;
  })) << grants;
  client_.revoke(lease);
}

TEST_F(WatchedEtcd, WithoutAPatternLocksAreProposed) {
  const auto lease = client_.grant(30);
  client_.put(EtcdClient::queued("app/jobs/17", lease), lease);
  client_.put("config/colour", 0);
  const Running watch("etcd", server().url(), {}, seen_);
  ASSERT_TRUE(seen_.comes([&] { return seen_.proposed_.contains("app/jobs/*"); }));
  EXPECT_FALSE(seen_.was_proposed("config/colour"));
  client_.revoke(lease);
}

TEST(WatchOfEtcd, IsBlindDuringARestartAndSeesAfterwards) {
  const auto server = own_etcd();
  Sightings seen;
  Running watch("etcd", server->url(), {.locks = {"locks/*"}}, seen);
  EtcdClient before(server->url());
  before.put("locks/a", before.grant(60));
  ASSERT_TRUE(seen.await_any("locks/a"));
  const TimePoint restarted_at = killed_and_back(*server, seen, true);
  EXPECT_TRUE(seen.await_any("locks/a", restarted_at));
  watch.stop();
}

TEST(WatchOfEtcd, NeedsOnlyToReadThePrefix) {
  const auto server = own_etcd();
  const test::EtcdGateway root(server->port(), testbed::kEtcdRoot, server->secret());
  root.must("/v3/auth/role/add", R"({"name":"watcher"})");
  // From "locks/" to "locks0", in base 64.
  root.must(
      "/v3/auth/role/grant",
      R"({"name":"watcher","perm":{"permType":"READ","key":"bG9ja3Mv","range_end":"bG9ja3Mw"}})");
  root.must("/v3/auth/user/add", R"({"name":"watcher","password":"hunter2"})");
  root.must("/v3/auth/user/grant", R"({"user":"watcher","role":"watcher"})");
  const std::string url = "http://watcher:hunter2@" + server->address();
  EtcdClient app(server->url());
  Sightings seen;
  const Running watch("etcd", url, {.locks = {"locks/*"}}, seen);
  const auto lease = app.grant(30);
  app.put("locks/a", lease);
  EXPECT_TRUE(seen.await_ttl("locks/a"));
  app.revoke(lease);
  EXPECT_TRUE(
      seen.await("locks/a", [](const Sighting& one) { return one.ended == Ending::released; }));
  const auto other = make_source("etcd", url, {.locks = {"other/*"}});
  const auto reached = (*other)->reach({});
  ASSERT_FALSE(reached);
  EXPECT_THAT(reached.error(), HasSubstr("permission denied"));
}

}  // namespace
}  // namespace lockbench::watch
