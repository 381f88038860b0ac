#include "testbed/servers/ports.h"

#include <gmock/gmock.h>

namespace lockbench::testbed {
namespace {

using testing::ElementsAre;

TEST(DistinctPorts, AreDrawnAgainUntilNoTwoAreTheSame) {
  const std::vector<std::uint16_t> proposals{5, 5, 6, 5, 7};
  std::size_t next = 0;
  const auto ports = distinct_ports(
      [&]() -> tl::expected<std::uint16_t, std::string> { return proposals.at(next++); }, 3);
  ASSERT_TRUE(ports) << ports.error();
  EXPECT_THAT(*ports, ElementsAre(5, 6, 7));
}

TEST(DistinctPorts, AreNotDrawnForEver) {
  const auto ports =
      distinct_ports([]() -> tl::expected<std::uint16_t, std::string> { return 5; }, 2);
  ASSERT_FALSE(ports);
  EXPECT_THAT(ports.error(), testing::HasSubstr("port 5"));
  const auto none = distinct_ports(
      []() -> tl::expected<std::uint16_t, std::string> {
        return tl::unexpected<std::string>("no ports");
      },
      2);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), "no ports");
}

struct NoServer {};
using NoServers = std::unique_ptr<NoServer>;

/// So many attempts in which one of three loses its port, and the others find no majority.
auto start_without_ports(int lost, int& attempts) {
  return start_all_on_free_ports<NoServer, int>(
      [&] {
        ++attempts;
        return std::vector<int>{0, 1, 2};
      },
      [&](std::size_t number, const std::vector<int>& /*all*/) -> NoServers {
        if (attempts > lost) return std::make_unique<NoServer>();
        if (number == 1) throw Failure("bind: " + std::string(kPortTaken));
        throw Failure("was not ready within 1 ms");
      });
}

TEST(PortsOfACluster, AreDrawnAgainWhoeverLostHis) {
  int attempts = 0;
  const auto started = start_without_ports(1, attempts);
  ASSERT_TRUE(started) << started.error();
  EXPECT_EQ(started->size(), 3U);
  EXPECT_EQ(attempts, 2);
}

TEST(PortsOfACluster, AreNotDrawnForEver) {
  int attempts = 0;
  const auto started = start_without_ports(100, attempts);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error(), "bind: Address already in use");
  EXPECT_EQ(attempts, 5);
}

TEST(PortsOfACluster, AreNotDrawnAgainWhereSomethingElseIsWrong) {
  int attempts = 0;
  const auto started = start_all_on_free_ports<NoServer, int>(
      [&] {
        ++attempts;
        return std::vector<int>{0, 1};
      },
      [](std::size_t number, const std::vector<int>& /*all*/) -> NoServers {
        if (number == 0) return std::make_unique<NoServer>();
        throw Failure("no folder");
      });
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error(), "no folder");
  EXPECT_EQ(attempts, 1);
}

}  // namespace
}  // namespace lockbench::testbed
