#include "strategies/random.h"

#include <gtest/gtest.h>

#include <array>
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

TEST(Random, EveryBitIsSetHalfOfTheTime) {
  constexpr int kDraws = 10'000;
  Random random(7);
  std::array<int, 64> set{};
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t bits = random();
    for (std::size_t bit = 0; bit < set.size(); ++bit) set[bit] += (bits >> bit & 1) == 1 ? 1 : 0;
  }
  for (const int count : set) EXPECT_NEAR(count, kDraws / 2, 300);
}

TEST(Random, NeighbouringStreamsAreIndependent) {
  constexpr int kDraws = 10'000;
  Random one(7, 1), next(7, 2);
  int alike = 0;
  for (int i = 0; i < kDraws; ++i) alike += (one() >> 63) == (next() >> 63) ? 1 : 0;
  EXPECT_NEAR(alike, kDraws / 2, 300);
}

}  // namespace
}  // namespace lockbench
