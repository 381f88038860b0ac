#include "testbed/ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lockbench::testbed
