#include "loadgen/record/per_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lockbench::loadgen {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

struct Counted {
  Counted() { ++made; }
  int value = 0;
  static inline int made = 0;
};

constexpr int kMany = 10'000'000;

std::vector<std::pair<int, int>> values_of(const PerKey<Counted>& states) {
  std::vector<std::pair<int, int>> values;
  states.for_each([&](int key, const Counted& state) {
    if (state.value != 0) values.emplace_back(key, state.value);
  });
  return values;
}

TEST(PerKey, FindsEachKeysStateAgain) {
  for (const int keys : {7, kMany}) {
    PerKey<Counted> states(keys);
    EXPECT_THAT(values_of(states), IsEmpty());
    states[keys - 1].value = 3;
    states[0].value = 1;
    states[5].value = 2;
    ++states[keys - 1].value;
    EXPECT_THAT(values_of(states), ElementsAre(Pair(0, 1), Pair(5, 2), Pair(keys - 1, 4)));
    ASSERT_NE(states.find(5), nullptr);
    EXPECT_EQ(states.find(5)->value, 2);
  }
}

TEST(PerKey, MakesOfManyOnlyThoseThatAreUsed) {
  Counted::made = 0;
  PerKey<Counted> states(kMany);
  EXPECT_EQ(Counted::made, 0);
  EXPECT_EQ(states.find(kMany - 1), nullptr);
  for (int key = 0; key < kMany; key += kMany / 10) states[key].value = 1;
  EXPECT_EQ(states.find(kMany - 1), nullptr);
  EXPECT_LE(Counted::made, 1024) << "in groups";
  EXPECT_EQ(values_of(states).size(), 10U);
}

TEST(PerKey, ThreadsThatUseAKeyFirstShareItsState) {
  constexpr int kKeys = 100'000, kThreads = 4, kUsed = 5000;
  struct Count {
    std::atomic<int> uses{0};
  };
  PerKey<Count> states(kKeys);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int key = 0; key < kUsed; ++key) ++states[key * 19].uses;
      });
    }
  }
  int used = 0;
  states.for_each([&](int, const Count& count) {
    ++used;
    EXPECT_EQ(count.uses, kThreads);
  });
  EXPECT_EQ(used, kUsed);
}

}  // namespace
}  // namespace lockbench::loadgen
