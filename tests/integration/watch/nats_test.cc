#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "deployment/failure.h"
#include "strategies/nats/client/connection.h"
#include "testbed/servers/kinds.h"
#include "tests/integration/watch/sightings.h"
#include "tests/support/servers.h"

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

std::unique_ptr<testbed::Server> own_nats(const std::vector<std::string>& users = {}) {
  return deployment::need(testbed::start_nats(test::shared_testbed(), {.users = users}));
}

/// The application whose locks are watched: buckets as nats.go makes them.
class NatsClient {
 public:
  explicit NatsClient(const testbed::Server& server)
      : nats_(*nats::parse_endpoint(server.url()), test::kPatience, *env_) {}

  void make_bucket(const std::string& bucket, Duration ttl) {
    const Duration window = ttl == Duration::zero() ? Duration(2min) : ttl;
    const Json stream{
        {"name", "KV_" + bucket},    {"subjects", Json::array({fmt::format("$KV.{}.>", bucket)})},
        {"max_msgs_per_subject", 1}, {"allow_rollup_hdrs", true},
        {"deny_delete", true},       {"discard", "new"},
        {"max_age", ttl.count()},    {"duplicate_window", window.count()}};
    ask("$JS.API.STREAM.CREATE.KV_" + bucket, "", stream.dump());
  }
  void put(const std::string& bucket, const std::string& key, const std::string& value) {
    ask(fmt::format("$KV.{}.{}", bucket, key), "", value);
  }
  void remove(const std::string& bucket, const std::string& key) {
    ask(fmt::format("$KV.{}.{}", bucket, key), "KV-Operation: DEL\r\n", "");
  }

 private:
  void ask(const std::string& subject, const std::string& headers, const std::string& payload) {
    const auto answer = nats_.ask(
        {.name = "HPUB", .key = {}, .subject = subject, .headers = headers, .payload = payload});
    if (!answer) throw std::runtime_error(answer.error().message);
    if (answer->refusal != nats::Refusal::none) throw std::runtime_error(answer->why);
  }

  std::unique_ptr<Env> env_ = make_system_env(1);
  nats::Connection nats_;
};

class WatchedNats : public testing::Test {
 protected:
  static testbed::Server& server() {
    static const std::unique_ptr<testbed::Server> shared = own_nats();
    return *shared;
  }

  NatsClient client_{server()};
  Sightings seen_;
};

TEST_F(WatchedNats, ALockIsSeenFromItsGrantToItsRelease) {
  client_.make_bucket("locks", 60s);
  client_.put("locks", "old", "somebody");
  const Running watch("nats", server().url(), {.locks = {"locks/*"}}, seen_);
  const auto old = seen_.await_held("locks/old", "somebody");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->changes, 0U);
  EXPECT_LE(*old->ttl_left, 60s);
  client_.put("locks", "order.17", "me");
  const auto held = seen_.await_held("locks/order.17", "me");
  ASSERT_TRUE(held);
  EXPECT_EQ(held->changes, 1U);
  EXPECT_EQ(held->ttl_left, Duration(60s));
  EXPECT_EQ(seen_.facts_.accuracy, Accuracy::exact);
  client_.remove("locks", "order.17");
  const auto released = seen_.await_free("locks/order.17", held->at);
  ASSERT_TRUE(released);
  EXPECT_EQ(released->ended, Ending::released);
  client_.put("locks", "order.17", "you");
  EXPECT_TRUE(seen_.await_held("locks/order.17", "you"));
}

TEST_F(WatchedNats, AnExpiryIsSeenWithoutAMessage) {
  // The watch is there before the bucket.
  const Running watch("nats", server().url(), {.locks = {"short/*"}}, seen_);
  const auto lacks = [&] {
    return std::ranges::count(seen_.facts_.unseen, "bucket short: there is none yet") > 0;
  };
  EXPECT_TRUE(seen_.comes(lacks));
  client_.make_bucket("short", 500ms);
  ASSERT_TRUE(seen_.comes([&] {
    client_.put("short", "a", "me");
    return !seen_.of_["short/a"].empty();
  }));
  const auto expired =
      seen_.await("short/a", [](const Sighting& one) { return one.ended == Ending::expired; });
  ASSERT_TRUE(expired);
  EXPECT_TRUE(expired->holders.empty());
  EXPECT_TRUE(seen_.comes([&] { return !lacks(); }));
  client_.put("short", "a", "you");
  EXPECT_TRUE(seen_.await_held("short/a", "you"));
}

TEST_F(WatchedNats, AnotherOwnerThatWritesOverALockIsATakeoverInOneChange) {
  client_.make_bucket("over", 60s);
  const Running watch("nats", server().url(), {.locks = {"over/*"}}, seen_);
  client_.put("over", "a", "me");
  ASSERT_TRUE(seen_.await_held("over/a", "me"));
  client_.put("over", "a", "you");
  const auto taken = seen_.await_held("over/a", "you");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->changes, 1U);
  EXPECT_EQ(taken->ended, std::nullopt);
}

TEST(WatchOfNats, IsBlindDuringARestartAndSeesAfterwards) {
  const auto server = own_nats();
  NatsClient client(*server);
  client.make_bucket("locks", 0s);
  Sightings seen;
  Running watch("nats", server->url(), {.locks = {"locks/*"}}, seen);
  client.put("locks", "a", "me");
  const auto held = seen.await_any("locks/a");
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->no_ttl);
  const TimePoint restarted_at = killed_and_back(*server, seen, true);
  EXPECT_TRUE(seen.await_any("locks/a", restarted_at));
  watch.stop();
}

/// A user with these rights to publish, beside the one to hear answers.
std::string nats_user(const std::string& name, const std::vector<std::string>& rights) {
  return fmt::format(
      R"({{ user: {}, password: "hunter2", permissions: {{ publish: {{ allow: {} }}, )"
      R"(subscribe: {{ allow: ["_INBOX.>"] }} }} }})",
      name, Json(rights).dump());
}

TEST(WatchOfNats, NeedsOnlyWhatItsPageNamesAndSaysWhatIsMissing) {
  const std::string info = "$JS.API.STREAM.INFO.KV_locks",
                    consumer = "$JS.API.CONSUMER.CREATE.KV_locks";
  const auto server =
      own_nats({nats_user("watcher", {info, consumer}), nats_user("lacks", {info})});
  const auto url_of = [&](const std::string& user) {
    return fmt::format("nats://{}:hunter2@{}", user, server->address());
  };
  NatsClient client(*server);
  client.make_bucket("locks", 60s);
  Sightings seen;
  const Running watch("nats", url_of("watcher"), {.locks = {"locks/*"}}, seen);
  client.put("locks", "a", "me");
  EXPECT_TRUE(seen.await_held("locks/a", "me"));
  const auto reached = (*make_source("nats", url_of("lacks"), {.locks = {"locks/*"}}))->reach({});
  ASSERT_FALSE(reached);
  EXPECT_THAT(reached.error(), AllOf(HasSubstr("Permissions Violation"), HasSubstr(consumer)));
  using Patterns = std::vector<std::string>;
  for (const Patterns& others : {Patterns{}, Patterns{"lock:*"}, Patterns{"lo*", "*"}}) {
    const auto made = make_source("nats", url_of("watcher"), {.locks = others});
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error(), HasSubstr("BUCKET/KEY"));
  }
}

}  // namespace
}  // namespace lockbench::watch
