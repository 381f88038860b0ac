#include "simulate/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/transport/poller.h"
#include "tests/support/virtual_time.h"
#include "tests/unit/simulate/puppet.h"

namespace lockbench::simulate {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

struct Polled : Stage {
  std::unique_ptr<Transport> connect() {
    const auto connecting = test::must(dialer.begin({.host = "puppet", .port = 1}, 5s, nullptr));
    return test::must(connecting->get(5s, {}));
  }
  std::vector<std::uint64_t> wait(Duration longest) {
    const TimePoint began = world.now();
    const auto tags = poller->wait(longest);
    waited = world.now() - began;
    return {tags.begin(), tags.end()};
  }

  SimulatedDialer dialer{host, network, servers};
  std::unique_ptr<Poller> poller = test::must(dialer.make_poller());
  Duration waited{};  ///< by the latest wait()
};

TEST(SimulatedPoller, ReportsEachConnectionOnceAndForgetsThoseThatAreGone) {
  test::on_virtual_time([] {
    Polled polled;
    const auto one = polled.connect();
    auto other = polled.connect();
    const int first = one->descriptor(), second = other->descriptor();
    polled.poller->watch(first, 1);
    polled.poller->watch(second, 2);
    polled.server.wires.at(0)->answer("x", polled.world.now());
    EXPECT_THAT(polled.wait(1s), ElementsAre(1));
    EXPECT_THAT(polled.wait(10ms), IsEmpty()) << "its input is still there";
    polled.poller->watch(first, 3);
    EXPECT_THAT(polled.wait(1s), ElementsAre(3));
    polled.server.wires.at(1)->refuse("closed");
    EXPECT_THAT(polled.wait(1s), ElementsAre(2));
    polled.poller->watch(first, 4);
    polled.poller->unwatch(first);
    polled.poller->watch(second, 5);
    other.reset();
    polled.poller->watch(-1, 6);
    EXPECT_THAT(polled.wait(10ms), IsEmpty());
  });
}

TEST(SimulatedTransport, IsQuietUntilItsServerSendsOrCloses) {
  test::on_virtual_time([] {
    Polled polled;
    const auto one = polled.connect(), other = polled.connect();
    EXPECT_TRUE(one->is_quiet() && other->is_quiet());
    polled.server.wires.at(0)->answer("x", polled.world.now());
    polled.server.wires.at(1)->refuse("closed");
    polled.pass(1s);
    EXPECT_FALSE(one->is_quiet());
    EXPECT_FALSE(other->is_quiet());
  });
}

TEST(SimulatedPoller, AWakeEndsTheNextWaitEvenInAPause) {
  test::on_virtual_time([] {
    Polled polled;
    const auto connection = polled.connect();
    polled.poller->wake();
    EXPECT_THAT(polled.wait(1s), IsEmpty());
    EXPECT_EQ(polled.waited, 0s);
    polled.poller->watch(connection->descriptor(), 1);
    polled.host.pause(polled.world.now(), 5s);
    polled.world.at(polled.world.now() + 1s, [&] { polled.poller->wake(); });
    EXPECT_THAT(polled.wait(10s), IsEmpty());
    EXPECT_EQ(polled.waited, 1s);
    polled.server.wires.at(0)->answer("x", polled.world.now());
    EXPECT_THAT(polled.wait(1s), ElementsAre(1));
    EXPECT_EQ(polled.waited, 4s) << "it looks after the pause";
  });
}

TEST(SimulatedPoller, InADeadProcessOnlyAWakeEndsAWait) {
  test::on_virtual_time([] {
    Polled polled;
    polled.host.kill();
    polled.world.at(polled.world.now() + 1min, [&] { polled.poller->wake(); });
    EXPECT_THAT(polled.wait(1s), IsEmpty());
    EXPECT_EQ(polled.waited, 1min);
  });
}

TEST(SimulatedPoller, HearsThoughAnotherFiberPolls) {
  test::on_virtual_time([] {
    Polled polled;
    const auto connection = polled.connect();
    polled.poller->watch(connection->descriptor(), 1);
    const auto other = test::must(polled.world.carrier().start(
        [&](const std::stop_token& stop) { polled.dialer.poll({}, 10ms, stop); }, {}));
    polled.server.wires.at(0)->answer("x", polled.world.now() + 20ms);
    EXPECT_THAT(polled.wait(10s), ElementsAre(1));
    EXPECT_LT(polled.waited, 1s);
  });
}

}  // namespace
}  // namespace lockbench::simulate
