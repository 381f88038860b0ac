#include "loadgen/fibers/stacks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lockbench::fibers {
namespace {

constexpr std::size_t kPage = 4096;

TEST(Stacks, DoNotOverlap) {
  Stacks stacks({.bytes = 5 * kPage});
  std::vector<Stack> taken;
  taken.reserve(100);
  for (int i = 0; i < 100; ++i) taken.push_back(stacks.take().value());
  std::sort(taken.begin(), taken.end(),
            [](Stack left, Stack right) { return left.data() < right.data(); });
  for (std::size_t i = 1; i < taken.size(); ++i) {
    EXPECT_LE(taken[i - 1].data() + taken[i - 1].size(), taken[i].data());
    EXPECT_GE(taken[i].size(), 5 * kPage);
  }
}

TEST(Stacks, ThoseThatWereGivenBackAreTakenFirst) {
  Stacks stacks({});
  const Stack first = stacks.take().value();
  stacks.give_back(first);
  EXPECT_EQ(stacks.take().value().data(), first.data());
}

TEST(Stacks, TrimmingReturnsOnlyWhatIsBelow) {
  Stacks stacks({});
  const Stack stack = stacks.take().value();
  std::byte& low = stack[stack.size() - 5 * kPage];
  std::byte& high = stack[stack.size() - 2 * kPage];
  low = high = std::byte{1};
  Stacks::trim(stack, &high);
  EXPECT_EQ(low, std::byte{0});
  EXPECT_EQ(high, std::byte{1});
}

TEST(Stacks, NoMemoryIsAnError) {
  Stacks stacks({.bytes = std::size_t{1} << 44});
  const auto stack = stacks.take();
  ASSERT_FALSE(stack);
  EXPECT_NE(stack.error().find("no memory for the stack of a fiber"), std::string::npos)
      << stack.error();
}

}  // namespace
}  // namespace lockbench::fibers
