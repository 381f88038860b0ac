#include "strategies/random.h"

#include <gtest/gtest.h>

#include <set>

namespace lockbench {
namespace {

TEST(Random, IsTheSameEverywhere) {
  Random random(1);
  EXPECT_EQ(random(), 0x8e250e551a5200bc);
  EXPECT_EQ(random(), 0xe7976a548b46c55f);
  EXPECT_EQ(Random(1, 5)(), 0x15f73994f1e0e21a);
}

TEST(Random, StreamsAndSeedsDiffer) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (std::uint64_t stream = 0; stream < 100; ++stream) seen.insert(Random(seed, stream)());
  }
  EXPECT_EQ(seen.size(), 10'000U);
}

}  // namespace
}  // namespace lockbench
