#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <stdexcept>

#include "simulate/zookeeper/node.h"
#include "strategies/zookeeper/client/session.h"
#include "tests/support/virtual_time.h"
#include "tests/unit/simulate/plans.h"

namespace lockbench::simulate {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using Kind = zookeeper::Request::Kind;

/// An ensemble, on the machine of its clients.
struct Ensemble {
  explicit Ensemble(ZookeeperSettings settings)
      : node(world, network, 0, kLocalRegion, std::move(settings)) {}

  void pass(Duration time) { world.carrier().wait(nullptr, world.now() + time, {}); }

  World world{1, {}};
  Network network{world, {}};
  ZookeeperNode node;
  std::vector<Server*> servers{&node};
};

/// A client with a session, which nobody keeps alive if it is idle.
struct Idler {
  Idler(Ensemble& ensemble, int number, Duration timeout)
      : host(ensemble.world, number, kLocalRegion, Clock(), {}),
        dialer(host, ensemble.network, ensemble.servers),
        env(host, static_cast<std::uint64_t>(number), false),
        session(test::must(zookeeper::parse_endpoint("zk://zookeeper-0:2181")), 5s, env, nullptr,
                zookeeper::connect_by(dialer, nullptr)) {
    EXPECT_TRUE(session.connect(timeout));
  }
  Idler(const Idler&) = delete;
  Idler& operator=(const Idler&) = delete;
  ~Idler() { session.close(); }

  zookeeper::Reply ask(Kind kind, const std::string& path) {
    const zookeeper::Request request{kind, path};
    const auto replies = session.call({&request, 1}, "k");
    if (!replies) throw std::runtime_error(replies.error().message);
    return replies->front();
  }
  bool sees(const std::string& path) { return ask(Kind::exists, path).done(); }
  void make_lock() {
    for (const char* const path : {"/lockbench", "/lockbench/r"}) ask(Kind::make, path);
    EXPECT_TRUE(ask(Kind::make_ephemeral, "/lockbench/r/k").done());
  }

  Host host;
  SimulatedDialer dialer;
  HostEnv env;
  zookeeper::Session session;
};

/// Sends packets as they are, and has no opinion on its session.
class RawClient {
 public:
  RawClient(Ensemble& ensemble, int number, Duration timeout)
      : host_(ensemble.world, number, kLocalRegion, Clock(), {}),
        dialer_(host_, ensemble.network, ensemble.servers) {
    const auto connecting =
        test::must(dialer_.begin({.host = "zookeeper-0", .port = 2181}, 5s, nullptr));
    packets_.emplace(test::must(connecting->get(5s, {})));
    EXPECT_TRUE(ask(zookeeper::greet({}, timeout)));
  }

  void send(const std::string& framed) { packets_->send(framed); }
  /// False: nothing comes, or the connection is closed.
  bool hears(Duration within = 5s) { return packets_->receive(within) == Transport::Status::ok; }
  bool ask(const std::string& framed) {
    send(framed);
    return hears();
  }
  bool ask(Kind kind, const std::string& path) {
    return ask(zookeeper::write(++xid_, {kind, path}, "", false));
  }
  void make_lock() {
    ask(Kind::make, "/lockbench");
    ask(Kind::make, "/lockbench/r");
    ask(Kind::make_ephemeral, "/lockbench/r/k");
  }

 private:
  Host host_;
  SimulatedDialer dialer_;
  std::optional<zookeeper::Packets> packets_;
  std::int32_t xid_ = 0;
};

/// The first client of a follower: it begins its session after the lag.
RawClient& connect_to_follower(Ensemble& ensemble, std::deque<RawClient>& clients, Duration lag,
                               Duration timeout) {
  for (int i = 0; i < 64; ++i) {
    const TimePoint began = ensemble.world.now();
    RawClient& client = clients.emplace_back(ensemble, i, timeout);
    if (ensemble.world.now() - began >= lag) return client;
  }
  throw std::runtime_error("no client is connected to a follower");
}

TEST(SimulatedZookeeper, AFollowerAnswersUntilItHasCarriedOutTheEndOfTheSession) {
  test::on_virtual_time([] {
    constexpr Duration kLag = 300ms;
    Ensemble ensemble({.members = 3, .lag = loadgen::DurationDistribution::constant(kLag)});
    std::deque<RawClient> clients;
    RawClient& client = connect_to_follower(ensemble, clients, kLag, 1s);
    client.make_lock();
    for (int i = 0; i < 10; ++i) {
      ensemble.pass(600ms);
      EXPECT_TRUE(client.ask(zookeeper::ping()));
    }
    EXPECT_THAT(ensemble.node.keys(), ElementsAre("lockbench:r:k")) << "the leader learns of it";
    ensemble.pass(1230ms);
    EXPECT_THAT(ensemble.node.keys(), IsEmpty());
    EXPECT_TRUE(client.ask(zookeeper::ping()));
    ensemble.pass(kLag);
    EXPECT_FALSE(client.ask(zookeeper::ping()));
  });
}

TEST(SimulatedZookeeper, AFreezeHoldsUpTheMembersAndOverdueSessionsEndAfterIt) {
  test::on_virtual_time([] {
    constexpr Duration kLag = 300ms;
    Ensemble ensemble({.members = 3, .lag = loadgen::DurationDistribution::constant(kLag)});
    std::deque<RawClient> clients;
    RawClient& client = connect_to_follower(ensemble, clients, kLag, 5s);
    client.make_lock();
    client.send(zookeeper::write(100, {Kind::make, "/x"}, "", false));
    ensemble.pass(100ms);
    ensemble.node.freeze();
    EXPECT_FALSE(client.hears(1s));
    ensemble.node.thaw();
    EXPECT_TRUE(client.hears(100ms));
    ensemble.node.freeze();
    ensemble.pass(10s);
    EXPECT_THAT(ensemble.node.keys(), ElementsAre("lockbench:r:k"));
    client.send(zookeeper::ping());
    ensemble.node.thaw();
    ensemble.pass(10ms);
    EXPECT_THAT(ensemble.node.keys(), IsEmpty());
  });
}

TEST(SimulatedZookeeper, ASyncDoesNotWaitForTheDisk) {
  test::on_virtual_time([] {
    Ensemble ensemble({});
    RawClient client(ensemble, 1, 1h);
    const auto time_of = [&](Kind kind) {
      const TimePoint began = ensemble.world.now();
      for (int i = 0; i < 20; ++i) client.ask(kind, fmt::format("/{}", i));
      return ensemble.world.now() - began;
    };
    const Duration changes = time_of(Kind::make);
    EXPECT_LT(time_of(Kind::sync) * 2, changes);
  });
}

TEST(SimulatedZookeeper, ASessionEndsAtTheTickAfterItsTimeout) {
  test::on_virtual_time([] {
    Ensemble ensemble({});
    {
      Idler idler(ensemble, 1, 1s);
      idler.make_lock();
      ensemble.pass(950ms);
      EXPECT_THAT(ensemble.node.keys(), ElementsAre("lockbench:r:k"));
      ensemble.pass(200ms);
      EXPECT_THAT(ensemble.node.keys(), IsEmpty());
    }
    Idler hasty(ensemble, 2, 1ms);
    hasty.make_lock();
    ensemble.pass(150ms);
    EXPECT_THAT(ensemble.node.keys(), ElementsAre("lockbench:r:k")) << "200 ms were granted";
    hasty.session.close();
    EXPECT_THAT(ensemble.node.keys(), IsEmpty()) << "it was closed";
  });
}

TEST(SimulatedZookeeper, AnElectionKeepsSessionsAndRestartsTheirTimeouts) {
  test::on_virtual_time([] {
    Ensemble ensemble({.members = 3});
    Idler idler(ensemble, 1, 2s);
    idler.make_lock();
    ensemble.pass(1500ms);
    ensemble.node.kill();
    ensemble.pass(100ms);
    EXPECT_TRUE(ensemble.node.fail_over());
    ensemble.pass(1900ms);
    EXPECT_THAT(ensemble.node.keys(), ElementsAre("lockbench:r:k"));
    ensemble.pass(300ms);
    EXPECT_THAT(ensemble.node.keys(), IsEmpty());
  });
}

TEST(SimulatedZookeeper, ARestartedFollowerLosesItsConnectionsButNotTheirSessions) {
  test::on_virtual_time([] {
    constexpr Duration kLag = 300ms;
    Ensemble ensemble({.members = 3, .lag = loadgen::DurationDistribution::constant(kLag)});
    std::deque<RawClient> clients;
    RawClient& client = connect_to_follower(ensemble, clients, kLag, 5s);
    client.make_lock();
    EXPECT_TRUE(client.ask(zookeeper::ping()));
    for (const std::size_t follower : {1U, 2U}) ensemble.node.restart_follower(follower);
    EXPECT_FALSE(client.ask(zookeeper::ping()));
    EXPECT_THAT(ensemble.node.keys(), ElementsAre("lockbench:r:k"));
  });
}

TEST(SimulatedZookeeper, AFollowerMayBeBehindUntilASync) {
  test::on_virtual_time([] {
    constexpr Duration kLag = 1s;
    Ensemble ensemble({.members = 3, .lag = loadgen::DurationDistribution::constant(kLag)});
    std::deque<Idler> clients;
    Idler* of_leader = nullptr;
    for (int i = 0; i < 16; ++i) {
      Idler& client = clients.emplace_back(ensemble, i, 1min);
      const TimePoint began = ensemble.world.now();
      EXPECT_TRUE(client.ask(Kind::make, fmt::format("/{}", i)).done());
      EXPECT_TRUE(client.sees(fmt::format("/{}", i))) << "its own member has made it";
      if (ensemble.world.now() - began < kLag) of_leader = &client;
    }
    if (of_leader == nullptr) return ADD_FAILURE() << "no client is connected to the leader";
    of_leader->ask(Kind::make, "/latest");
    std::vector<Idler*> behind;
    for (Idler& client : clients) {
      if (!client.sees("/latest")) behind.push_back(&client);
    }
    ASSERT_FALSE(behind.empty());
    EXPECT_LT(behind.size(), clients.size());
    EXPECT_TRUE(behind.front()->ask(Kind::sync, "/latest").done());
    EXPECT_TRUE(behind.front()->sees("/latest"));
  });
}

TEST(SimulatedZookeeper, ContainersGoSoonAfterTheirLastChild) {
  test::on_virtual_time([] {
    Ensemble ensemble({});
    Idler client(ensemble, 1, 1h);
    client.make_lock();
    ensemble.pass(2min);
    EXPECT_TRUE(client.sees("/lockbench/r"));
    client.ask(Kind::remove, "/lockbench/r/k");
    ensemble.pass(1min);
    EXPECT_FALSE(client.sees("/lockbench/r"));
    ensemble.pass(1min);
    EXPECT_FALSE(client.sees("/lockbench"));
  });
}

TEST(SimulatedZookeeper, AServerRemembersAndAPausedHolderLosesItsSession) {
  Plan plan = plan_for("zookeeper");
  plan.workload.hold = loadgen::DurationDistribution::constant(500ms);
  plan.workload.duration = 5min;
  Plan dying = plan;
  dying.faults = faults("store-kill 10/m 50ms\nfailover 10/m 50ms\nstore-freeze 10/m 300ms");
  const Outcome outcome = test::must(simulate(dying, 1));
  EXPECT_GT(outcome.sections, 200U);
  EXPECT_EQ(outcome.violations, 0U);
  plan.pauses = {test::must(Pauses::parse("5%@10s"))};
  const Outcome paused = test::must(simulate(plan, 1));
  EXPECT_THAT(paused.causes, Contains(Key("client-pause")));
  EXPECT_GT(paused.lost, 0U);
  EXPECT_EQ(paused.lost_fenced, 0U);
}

TEST(SimulatedZookeeper, TellsItsRequests) {
  Plan plan = plan_for("zookeeper");
  plan.workload.duration = 1s;
  EXPECT_THAT(played(plan).trace, HasSubstr(" zookeeper-0 executes create /lockbench/"));
}

}  // namespace
}  // namespace lockbench::simulate
