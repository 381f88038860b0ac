#include "strategies/transport/poller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "tests/support/eventually.h"

namespace lockbench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Two ends of a connection.
struct Pair {
  Pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    for (const int end : ends) ::close(end);
  }
  void say_something() { EXPECT_EQ(::write(ends[1], "x", 1), 1); }

  std::array<int, 2> ends{};
};

class PollerTest : public testing::Test {
 protected:
  std::vector<std::uint64_t> wait(Duration longest = test::kPatience) {
    const auto tags = poller_->wait(longest);
    return {tags.begin(), tags.end()};
  }

  std::unique_ptr<Poller> poller_ = Poller::make().value();
};

TEST_F(PollerTest, ReportsEachConnectionOnce) {
  Pair one, other;
  poller_->watch(one.ends[0], 1);
  poller_->watch(other.ends[0], 2);
  one.say_something();
  EXPECT_THAT(wait(), ElementsAre(1));
  EXPECT_THAT(wait(Duration::zero()), IsEmpty()) << "its input is still there";
  poller_->watch(one.ends[0], 3);
  EXPECT_THAT(wait(), ElementsAre(3));
  ::shutdown(other.ends[1], SHUT_RDWR);
  EXPECT_THAT(wait(), ElementsAre(2)) << "closed";
}

TEST_F(PollerTest, ForgetsWhatIsNotWatchedAnyMore) {
  Pair pair;
  poller_->watch(pair.ends[0], 1);
  poller_->unwatch(pair.ends[0]);
  pair.say_something();
  EXPECT_THAT(wait(Duration::zero()), IsEmpty());
  poller_->watch(-1, 1);
  poller_->unwatch(-1);
}

TEST_F(PollerTest, IsWokenByAnotherThread) {
  const std::jthread waker([this] { poller_->wake(); });
  EXPECT_THAT(wait(Duration::max()), IsEmpty());
  EXPECT_THAT(wait(Duration::zero()), IsEmpty());
}

TEST(Poller, SaysWhyThereIsNone) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto poller = Poller::make();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_FALSE(poller);
  EXPECT_THAT(poller.error(), testing::HasSubstr("Too many open files"));
}

}  // namespace
}  // namespace lockbench
