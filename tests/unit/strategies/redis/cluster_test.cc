#include "strategies/redis/client/cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "strategies/redis/client/protocol.h"
#include "tests/support/sim_env.h"

namespace lockbench::redis {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr int kA = 7001, kB = 7002;

Reply text_reply(std::string text) {
  Reply reply;
  reply.type = Reply::Type::string;
  reply.text = std::move(text);
  return reply;
}
Reply number_reply(std::int64_t number) {
  Reply reply;
  reply.type = Reply::Type::integer;
  reply.integer = number;
  return reply;
}
Reply list_reply(std::vector<Reply> elements) {
  Reply reply;
  reply.type = Reply::Type::array;
  reply.elements = std::move(elements);
  return reply;
}
Reply error_reply(std::string text) {
  Reply reply = text_reply(std::move(text));
  reply.type = Reply::Type::error;
  reply.code = error_code(reply.text);
  return reply;
}
Reply range_reply(int first, int last, int port) {
  return list_reply({number_reply(first), number_reply(last),
                     list_reply({text_reply("h"), number_reply(port), text_reply("id")})});
}

/// Servers "h:PORT", each a function from a command to its answer; without one, it is down.
class ScriptedCluster {
 public:
  using Server = std::function<Reply(const Words&)>;

  ScriptedCluster() {
    servers[kA] = servers[kB] = [](const Words& words) { return text_reply(words[0]); };
    slots = list_reply({range_reply(0, 8191, kA), range_reply(8192, kSlots - 1, kB)});
  }

  std::unique_ptr<Connection> connect(std::vector<HostPort> seeds = {{"h", kA}, {"h", kB}}) {
    Endpoint endpoint;
    endpoint.cluster = std::move(seeds);
    return make_cluster_connection(
        [this](const Endpoint& server, const Timeouts& /*timeouts*/, Env& /*env*/)
            -> std::unique_ptr<Connection> { return std::make_unique<Link>(*this, server.port); },
        endpoint, 1s, env);
  }

  std::map<int, Server> servers;
  Reply slots;
  std::vector<std::string> seen;  ///< "7001 GET", without CLUSTER SLOTS
  int maps = 0;                   ///< how often the slots were asked for
  SimClock clock;
  SimEnv env{clock};

 private:
  class Link : public Connection {
   public:
    Link(ScriptedCluster& cluster, int port)
        : cluster_(cluster), port_(port), display_(fmt::format("h:{}", port)) {}
    const std::string& display() const override { return display_; }
    StoreResult<void> connect(const std::stop_token& /*stop*/) override { return {}; }
    StoreResult<bool> connect_within(Duration, const std::stop_token&) override { return true; }
    void queue(Command command, std::string_view, Duration) override {
      queued_.emplace_back(command.begin(), command.end());
    }
    void flush(const std::stop_token&) override {}
    StoreResult<Reply> receive(const std::stop_token&) override {
      const Words words = std::move(queued_.front());
      queued_.pop_front();
      if (!cluster_.servers.contains(port_)) {
        return failure_at(display_, StoreError::Kind::not_sent, "connection refused");
      }
      if (words[0] == "CLUSTER") {
        ++cluster_.maps;
        return cluster_.slots;
      }
      cluster_.seen.push_back(fmt::format("{} {}", port_, words[0]));
      const Reply reply = cluster_.servers[port_](words);
      if (reply.type != Reply::Type::error) return reply;
      return failure_at(display_, StoreError::Kind::rejected, reply.text, reply.code);
    }
    std::optional<StoreResult<Reply>> receive_within(Duration,
                                                     const std::stop_token& stop) override {
      return receive(stop);
    }
    int descriptor() const override { return -1; }
    void close() noexcept override {}

   private:
    ScriptedCluster& cluster_;
    const int port_;
    const std::string display_;
    std::deque<Words> queued_;
  };
};

/// Of slots 12182 and 5061, by Redis's own CLUSTER KEYSLOT.
constexpr std::string_view kAtB = "foo", kAtA = "bar";

TEST(Cluster, SlotsAreThoseOfRedis) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of("bar"), 5061);
  EXPECT_EQ(slot_of("lockbench:run:{foo}"), 12182);
  EXPECT_EQ(slot_of("lockbench:run:{foo}:wake:{bar}"), 12182);
  EXPECT_EQ(slot_of("{}foo"), slot_of("{}foo"));
  EXPECT_NE(slot_of("{}foo"), slot_of("{}bar")) << "an empty tag is none";
  EXPECT_NE(slot_of("{foo"), slot_of("foo"));
  EXPECT_EQ(slot_of(""), 0);
}

TEST(Cluster, SlotMapsThatContradictThemselvesAreRefused) {
  const Reply good = list_reply({range_reply(0, 5, 1), range_reply(9, 9, 2)});
  const auto map = SlotMap::read(good, HostPort{});
  ASSERT_TRUE(map);
  EXPECT_EQ(map->owner(5)->port, 1);
  EXPECT_EQ(map->owner(6), nullptr);
  EXPECT_EQ(map->owner(9)->port, 2);
  EXPECT_EQ(map->owner(10), nullptr);
  const Reply no_host = list_reply({list_reply(
      {number_reply(0), number_reply(1), list_reply({text_reply(""), number_reply(7)})})});
  EXPECT_EQ(SlotMap::read(no_host, {"asked", 1})->owner(0)->host, "asked");
  const Reply empty = list_reply({});
  for (const Reply& bad :
       {text_reply("OK"), empty, list_reply({empty}), list_reply({text_reply("x")}),
        list_reply({range_reply(0, kSlots, 1)}), list_reply({range_reply(-1, 3, 1)}),
        list_reply({range_reply(3, 2, 1)}), list_reply({range_reply(0, 3, 0)}),
        list_reply({range_reply(0, 3, 65536)}),
        list_reply({range_reply(0, 5, 1), range_reply(5, 6, 2)})}) {
    EXPECT_FALSE(SlotMap::read(bad, HostPort{}));
  }
  EXPECT_FALSE(redirected_to("MOVED 1 h", HostPort{}));
  EXPECT_FALSE(redirected_to("MOVED 1 h:0", HostPort{}));
  EXPECT_EQ(redirected_to("ASK 1 :7", {"asked", 1}), (HostPort{"asked", 7}));
  EXPECT_EQ(redirected_to("MOVED 1 ::1:7", HostPort{}), (HostPort{"::1", 7}));
}

TEST(Cluster, EachCommandGoesToTheServerOfItsKey) {
  ScriptedCluster cluster;
  const auto connection = cluster.connect();
  connection->queue({"GET", kAtB});
  connection->queue({"DEL", kAtA});
  connection->queue({"TTL", kAtB});
  for (const char* name : {"GET", "DEL", "TTL"}) {
    EXPECT_TRUE(connection->receive()->is_text(name)) << "answers come in the order of commands";
  }
  EXPECT_THAT(cluster.seen, ElementsAre("7002 GET", "7001 DEL", "7002 TTL"));
  EXPECT_EQ(connection->server_of(kAtB)->port, kB);
  EXPECT_TRUE(connection->server_of(kAtB)->sharded);
  EXPECT_EQ(cluster.maps, 1);
}

TEST(Cluster, MovedIsFollowedAndTheSlotsAreLearnedAnew) {
  ScriptedCluster cluster;
  const auto connection = cluster.connect();
  cluster.servers[kB] = [](const Words&) { return error_reply("MOVED 12182 h:7001"); };
  // The rest of the batch still gets its own answers.
  connection->queue({"GET", kAtB});
  connection->queue({"DEL", kAtA});
  EXPECT_TRUE(connection->receive()->is_text("GET"));
  EXPECT_TRUE(connection->receive()->is_text("DEL"));
  cluster.slots = list_reply({range_reply(0, kSlots - 1, kA)});
  EXPECT_TRUE(connection->call({"GET", kAtB})->is_text("GET"));
  EXPECT_THAT(cluster.seen, ElementsAre("7002 GET", "7001 DEL", "7001 GET", "7001 GET"));
  EXPECT_EQ(cluster.maps, 2);
}

TEST(Cluster, AskIsFollowedOnceAndTryAgainAfterAPause) {
  ScriptedCluster cluster;
  const auto connection = cluster.connect();
  int tries = 0;
  cluster.servers[kB] = [](const Words&) { return error_reply("ASK 12182 h:7001"); };
  cluster.servers[kA] = [&](const Words& words) {
    if (words[0] == "GET" && ++tries == 1) return error_reply("TRYAGAIN both");
    return text_reply(words[0]);
  };
  EXPECT_TRUE(connection->call({"GET", kAtB})->is_text("GET"));
  EXPECT_THAT(cluster.seen,
              ElementsAre("7002 GET", "7001 ASKING", "7001 GET", "7001 ASKING", "7001 GET"));
  EXPECT_FALSE(cluster.env.waits().empty());
  EXPECT_EQ(cluster.maps, 1) << "ASK concerns one command";
}

TEST(Cluster, ATransactionStaysTogether) {
  ScriptedCluster cluster;
  const auto connection = cluster.connect();
  cluster.servers[kB] = [](const Words& words) {
    return words[0] == "SET" ? error_reply("MOVED 12182 h:7001") : text_reply(words[0]);
  };
  for (const Words& words : std::vector<Words>{{"MULTI"}, {"SET", "foo", "1"}, {"EXEC"}}) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    connection->queue(Command(views), {}, {});
  }
  for (const char* name : {"MULTI", "SET", "EXEC"}) {
    EXPECT_TRUE(connection->receive()->is_text(name));
  }
  EXPECT_THAT(cluster.seen, ElementsAre("7002 MULTI", "7002 SET", "7002 EXEC", "7001 MULTI",
                                        "7001 SET", "7001 EXEC"));
}

TEST(Cluster, ADeadServersSuccessorIsFound) {
  ScriptedCluster cluster;
  const auto connection = cluster.connect();
  ASSERT_TRUE(connection->connect());
  cluster.servers.erase(kB);
  const auto failed = connection->call({"GET", kAtB});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, StoreError::Kind::not_sent);
  EXPECT_THAT(failed.error().message, HasSubstr("h:7002"));
  cluster.slots = list_reply({range_reply(0, kSlots - 1, kA)});
  EXPECT_TRUE(connection->call({"GET", kAtB})->is_text("GET"));
}

TEST(Cluster, HostileServersAreToldAndLeftSoon) {
  const struct {
    std::string answer, told;
  } cases[] = {{"MOVED 12182 h:7002", "after 5 redirects"},
               {"MOVED 12182 h:7001", "redirects"},
               {"MOVED 12182 h:9", "h:9"},
               {"MOVED 12182", "MOVED"},
               {"MOVED", "MOVED"},
               {"ASK 12182 h:7002", "after 5 redirects"},
               {"TRYAGAIN", "redirects"},
               {"CLUSTERDOWN x", "CLUSTERDOWN"}};
  for (const auto& [answer, told] : cases) {
    ScriptedCluster cluster;
    cluster.servers[kA] = cluster.servers[kB] = [&, said = answer](const Words& words) {
      return words[0] == "ASKING" ? text_reply("OK") : error_reply(said);
    };
    const auto connection = cluster.connect();
    const auto reply = connection->call({"GET", kAtB});
    ASSERT_FALSE(reply) << answer;
    EXPECT_NE(reply.error().kind, StoreError::Kind::unanswered) << "it took no effect";
    EXPECT_THAT(reply.error().message, HasSubstr(told)) << answer;
    EXPECT_LE(cluster.seen.size(), 12U);
    EXPECT_LE(cluster.maps, 12);
  }
  for (const Reply& slots : {text_reply("x"), list_reply({range_reply(0, 3, 0)})}) {
    ScriptedCluster cluster;
    cluster.slots = slots;
    const auto connected = cluster.connect()->connect();
    ASSERT_FALSE(connected);
    EXPECT_THAT(connected.error().message, HasSubstr("no server shows the cluster's slots"));
  }
  ScriptedCluster holes;
  holes.slots = list_reply({range_reply(0, 0, kA)});
  EXPECT_THAT(holes.connect()->call({"GET", kAtB}).error().message, HasSubstr("slot 12182"));
}

}  // namespace
}  // namespace lockbench::redis
