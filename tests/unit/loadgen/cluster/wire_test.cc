#include "loadgen/cluster/wire.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "loadgen/cluster/part.h"

namespace lockbench::loadgen::cluster {
namespace {

using namespace std::chrono_literals;

struct Everything {
  std::int64_t whole = 0;
  std::uint64_t count = 0;
  double number = 0;
  bool yes = false;
  std::string text;
  Duration duration{};
  std::optional<int> perhaps;
  std::vector<std::pair<int, std::string>> list;
  std::map<std::string, std::vector<double>> map;
  bool operator==(const Everything&) const = default;
};

TEST(Wire, EverythingComesBackAsItWas) {
  const Everything sent{.whole = std::numeric_limits<std::int64_t>::min(),
                        .count = std::numeric_limits<std::uint64_t>::max(),
                        .number = -0.1,
                        .yes = true,
                        .text = std::string("\0\xff, text", 8),
                        .duration = -3ns,
                        .perhaps = -7,
                        .list = {{1, "one"}, {-1, ""}},
                        .map = {{"a", {1.5, 2}}, {"b", {}}}};
  Everything received;
  ASSERT_TRUE(from_bytes(to_bytes(sent), received));
  EXPECT_EQ(received, sent);
}

TEST(Wire, AnOrderComesBackAsItWas) {
  Order sent;
  sent.run_id = "id";
  sent.strategy = "redlock";
  sent.workload.hold = DurationDistribution::uniform(1ms, 3ms);
  sent.workload.hot_set = HotSet{.share = 0.5, .keys = 3, .moves_every = 2s};
  sent.workload.iterations = 100;
  sent.workload.strategy.wait = WaitPolicy::backoff(1ms, 2ms);
  sent.workload.resource = Resource::redis_fenced;
  sent.endpoints = {{"redis", {"redis://a", "redis://b"}}};
  Order received;
  ASSERT_TRUE(from_bytes(to_bytes(sent), received));
  EXPECT_EQ(to_bytes(received), to_bytes(sent));
  EXPECT_EQ(received.workload.hold, sent.workload.hold);
  EXPECT_EQ(received.endpoints, sent.endpoints);
}

TEST(Wire, WhatIsCutOffOrTooLongIsRefused) {
  const std::string whole = to_bytes(Everything{.text = "text", .list = {{1, "one"}}});
  Everything received;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(from_bytes(std::string_view(whole).substr(0, length), received)) << length;
  }
  EXPECT_FALSE(from_bytes(whole + "x", received));
}

TEST(Wire, AnyBytesAreReadWithoutHarm) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    Part part;
    (void)from_bytes(bytes, part);  // what counts is that it ends
  }
}

}  // namespace
}  // namespace lockbench::loadgen::cluster
