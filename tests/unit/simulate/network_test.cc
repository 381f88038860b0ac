#include "simulate/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "loadgen/fibers/scheduler.h"
#include "simulate/wire.h"
#include "tests/support/must.h"

namespace lockbench::simulate {
namespace {

using namespace std::chrono_literals;

struct SilentServer final : Server {
  using Server::Server;
  void accept(const std::shared_ptr<Wire>&) override {}
  void arrive(const std::shared_ptr<Wire>&, std::string) override {}
  void closed(const std::shared_ptr<Wire>&) override {}
};

void in_virtual_time(const std::function<void()>& act) {
  fibers::Stacks stacks(fibers::StackSize{.bytes = std::size_t{128} * 1024});
  const auto scheduler = test::must(fibers::Scheduler::make(stacks, fibers::Time::virtual_time));
  std::string failure;
  const auto task = test::must(scheduler->start([&](const std::stop_token&) { act(); },
                                                [&](const std::string& why) { failure = why; }));
  scheduler->finish();
  scheduler->run();
  EXPECT_EQ(failure, "");
}

/// Messages are sent every few milliseconds; the blocks come and go beside that.
std::vector<int> arrivals(int messages, std::uint64_t seed) {
  std::vector<int> arrived;
  in_virtual_time([&] {
    World world(seed, {});
    Network network(world, 3ms);
    Host host(world, 0, kLocalRegion, Clock(), {});
    SilentServer server(0, kLocalRegion, "server");
    const auto wire = std::make_shared<Wire>(host, network, server);
    std::vector<int> blocks;
    for (int i = 0; i < messages; ++i) {
      if (world.random()() % 8 == 0) blocks.push_back(network.block(1, true, false));
      if (world.random()() % 4 == 0 && !blocks.empty()) {
        std::swap(blocks[world.random()() % blocks.size()], blocks.back());
        network.unblock(blocks.back());
        blocks.pop_back();
      }
      network.send(*wire, Way::to_server, world.now(), [&arrived, i] { arrived.push_back(i); });
      world.carrier().wait(nullptr, world.now() + 5ms, {});
    }
    for (const int block : blocks) network.unblock(block);
    world.carrier().wait(nullptr, world.now() + 10s, {});
  });
  return arrived;
}

TEST(Network, MessagesOfAConnectionArriveInOrderThoughPartitionsHoldThemUp) {
  std::vector<int> sent(200);
  std::iota(sent.begin(), sent.end(), 0);
  for (std::uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(arrivals(200, seed), sent) << seed;
}

}  // namespace
}  // namespace lockbench::simulate
