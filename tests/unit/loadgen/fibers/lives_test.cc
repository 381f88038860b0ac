// How fibers begin, fail and end, and their stacks.
#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <span>
#include <stdexcept>

#include "loadgen/fibers/stacks.h"
#include "tests/unit/loadgen/fibers/pool_fixture.h"

namespace lockbench::fibers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class LivesTest : public PoolTest {
 protected:
  ~LivesTest() override { end(); }
};

/// Throws, lets other fibers run in two handlers, and notes what it caught.
void fail_and_wait(const std::string& what, std::vector<std::string>& said) {
  Carrier& carrier = Carrier::current();
  try {
    try {
      throw std::runtime_error(what);
    } catch (const std::exception&) {
      carrier.wait(nullptr, Carrier::current().now() + 1ms, {});
      throw;  // the exception that this fiber handles
    }
  } catch (const std::exception& error) {
    carrier.yield();
    said.emplace_back(error.what());
  }
  EXPECT_EQ(std::current_exception(), nullptr);
}

TEST_F(LivesTest, AFiberMayWaitWhileItHandlesAnException) {
  std::vector<std::string> said;
  for (const std::string what : {"first", "second", "third"}) {
    start(0, [&said, what] { fail_and_wait(what, said); });
  }
  end();
  EXPECT_THAT(said, UnorderedElementsAre("first", "second", "third"));
  EXPECT_THAT(failures_, IsEmpty());
}

struct WaitsAtItsEnd {
  ~WaitsAtItsEnd() {
    Carrier::current().wait(nullptr, Carrier::current().now() + 1ms, {});
    under_way = std::uncaught_exceptions();
  }
  int& under_way;
};

TEST_F(LivesTest, AFiberMayWaitWhileAnExceptionIsUnderWay) {
  int with = -1, without = -1;
  start(0, [&] {
    const WaitsAtItsEnd waits{with};
    throw std::runtime_error("on its way");
  });
  start(0, [&] { const WaitsAtItsEnd waits{without}; });
  end();
  EXPECT_EQ(with, 1);
  EXPECT_EQ(without, 0);
  EXPECT_THAT(failures_, ElementsAre("on its way"));
}

TEST_F(LivesTest, AFiberMayDestroyTheTaskOfAnotherOne) {
  for (const int its_thread : {0, 1}) {
    std::atomic<bool> stopped{false};
    run([&] {
      auto task = pool_->start(its_thread,
                               [&](const std::stop_token& stop) {
                                 Carrier& carrier = Carrier::current();
                                 stopped =
                                     carrier.wait(nullptr, bound(), stop) == WaitResult::stopped;
                               },
                               {});
      ASSERT_TRUE(task) << task.error();
      task->reset();
      EXPECT_TRUE(stopped);
    });
    EXPECT_TRUE(stopped);
  }
}

/// Uses this many stack frames of some 300 bytes each.
// NOLINTNEXTLINE(misc-no-recursion): its purpose
int recurse(volatile int& frames) {
  const std::array<volatile char, 256> frame{};
  if (frames == 0) return 0;
  frames = frames - 1;
  return recurse(frames) + frame[0];
}

TEST_F(LivesTest, AFiberGoesOnAfterItsStackWasTrimmed) {
  run([] {
    std::array<int, 4> kept{1, 2, 3, 4};
    volatile int frames = 100;
    recurse(frames);
    trim_stack();
    frames = 3;
    recurse(frames);
    EXPECT_THAT(kept, ElementsAre(1, 2, 3, 4));
  });
}

using OverflowDeathTest = LivesTest;

TEST_F(OverflowDeathTest, AnOverflowEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        start(0, [] {
          volatile int frames = 1'000'000;
          recurse(frames);
        });
        end();
      },
      "");
}

// Sanitizers check frames themselves, and stacks are larger for them.
#if !defined(LOCKBENCH_ASAN) && !defined(LOCKBENCH_TSAN)
[[gnu::noinline]] char large_frame(std::size_t at) {
  std::array<char, std::size_t{24} * 1024> frame;
  const std::span<volatile char> seen(frame);
  seen[at] = 1;  // only at the lowest address, as a buffer is filled from its start
  return seen[at];
}

TEST_F(OverflowDeathTest, ALargeFrameDoesNotStepOverTheGuard) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  pool_ = Pool::make(1, {.bytes = std::size_t{16} * 1024}).value();
  EXPECT_DEATH(
      {
        start(0, [] { large_frame(0); });
        end();
      },
      "");
}
#endif

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
