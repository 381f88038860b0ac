#include "strategies/redis/client/notification_hub.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/eventually.h"
#include "tests/support/fake_pub_sub.h"

namespace lockbench::redis {
namespace {

using namespace std::chrono_literals;
using test::eventually;

/// One client's wait, with its event and Env.
class Waiting {
 public:
  explicit Waiting(NotificationHub& hub, const std::string& channel = "c")
      : waiter_(std::in_place, hub, channel, *event_) {}

  NotificationHub::Waiter& waiter() { return *waiter_; }
  void leave() { waiter_.reset(); }
  bool await_hearing() {
    const bool subscribed = eventually([this] { return waiter_->subscribed(); });
    is_woken(0ms);  // by the confirmation, which is no message
    return subscribed;
  }
  bool is_woken(Duration within = test::kPatience) {
    return env_->wait(event_.get(), env_->now() + within, {}) == WaitResult::signalled;
  }

 private:
  std::unique_ptr<Env> env_ = make_system_env(1);
  std::unique_ptr<Event> event_ = env_->make_event();
  std::optional<NotificationHub::Waiter> waiter_;
};

/// Notes how long the hub wants to pause, and lets it go on soon. Its backoff is the longest.
class PausingWorld : public ForwardingEnv {
 public:
  explicit PausingWorld(std::vector<Duration>& pauses)
      : ForwardingEnv(make_system_env(2)), pauses_(pauses) {}
  TimePoint now() override { return now_ = ForwardingEnv::now(); }
  std::uint64_t random() override { return std::numeric_limits<std::uint64_t>::max(); }
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    if (event != nullptr) return ForwardingEnv::wait(event, deadline, stop);
    pauses_.push_back(deadline - now_);
    return ForwardingEnv::wait(nullptr, now_ + 1ms, stop);
  }

 private:
  TimePoint now_{};
  std::vector<Duration>& pauses_;
};

class NotificationHubTest : public testing::Test {
 protected:
  NotificationHub& hub() {
    if (!hub_) hub_.emplace(Endpoint{}, 1s, server_, make_system_env(2));
    return *hub_;
  }

  FakePubSub server_;
  std::optional<NotificationHub> hub_;
};

/// Two clients that wait on one channel, the first one longer.
class TwoWait : public NotificationHubTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(first_.await_hearing());
    ASSERT_TRUE(second_.await_hearing());
  }
  /// Once a later message has woken its waiter, the hub has handled the earlier ones.
  void settle() {
    Waiting last(hub(), "other");
    ASSERT_TRUE(last.await_hearing());
    server_.publish("other");
    ASSERT_TRUE(last.is_woken());
    last.waiter().satisfied();
  }
  Waiting first_{hub()}, second_{hub()};
};

TEST_F(TwoWait, EachMessageWakesTheOldestWaiterThatHasNone) {
  server_.publish("c");
  EXPECT_TRUE(first_.is_woken());
  settle();
  EXPECT_FALSE(second_.is_woken(0ms));
  server_.publish("c");
  EXPECT_TRUE(second_.is_woken());
}

TEST_F(TwoWait, AWaiterThatLeavesPassesItsUnreadMessageOn) {
  server_.publish("c");
  settle();
  first_.leave();
  EXPECT_TRUE(second_.is_woken());
}

/// Whether it took the lock or found it taken.
TEST_F(NotificationHubTest, AWaiterThatUsedItsMessagePassesNothingOn) {
  using Waiter = NotificationHub::Waiter;
  for (const auto& [channel, use] :
       {std::pair("c", &Waiter::satisfied), std::pair("d", &Waiter::found_taken)}) {
    Waiting first(hub(), channel), second(hub(), channel);
    ASSERT_TRUE(first.await_hearing() && second.await_hearing());
    server_.publish(channel);
    ASSERT_TRUE(first.is_woken());
    first.waiter().woken();
    (first.waiter().*use)();
    first.leave();
    EXPECT_FALSE(second.is_woken(0ms));
  }
}

TEST_F(TwoWait, AMessageThatArrivesWhileAskingIsPassedOn) {
  server_.publish("c");
  ASSERT_TRUE(first_.is_woken());
  first_.waiter().woken();
  server_.publish("c");
  ASSERT_TRUE(first_.is_woken());
  first_.waiter().found_taken();
  first_.leave();  // its deadline has passed
  EXPECT_TRUE(second_.is_woken());
}

TEST_F(NotificationHubTest, ABrokenConnectionWakesAllAndIsRestored) {
  Waiting first(hub()), second(hub()), other(hub(), "other");
  for (Waiting* one : {&first, &second, &other}) ASSERT_TRUE(one->await_hearing());
  server_.confirm_at_once(false);
  server_.break_connection();
  for (Waiting* one : {&first, &second, &other}) {
    EXPECT_TRUE(one->is_woken());
    EXPECT_FALSE(one->waiter().subscribed());
  }
  ASSERT_TRUE(
      eventually([&] { return server_.is_subscribed("c") && server_.is_subscribed("other"); }));
  EXPECT_EQ(server_.connections(), 2);
  server_.confirm("c");
  ASSERT_TRUE(
      eventually([&] { return first.waiter().subscribed() && second.waiter().subscribed(); }));
  first.is_woken(0ms);
  server_.publish("c");
  EXPECT_TRUE(first.is_woken());
}

TEST_F(NotificationHubTest, BacksOffFromAServerThatRefuses) {
  server_.refuse_subscriptions();
  std::vector<Duration> pauses;
  hub_.emplace(Endpoint{}, 1s, server_, std::make_unique<PausingWorld>(pauses));
  std::optional<Waiting> one(std::in_place, hub());
  ASSERT_TRUE(eventually([&] { return server_.connections() > 8; }));
  EXPECT_FALSE(one->waiter().subscribed());
  one.reset();
  hub_.reset();  // with its thread
  ASSERT_GE(pauses.size(), 8U);
  EXPECT_NEAR(seconds(pauses[0]), 0.01, 1e-6);
  EXPECT_NEAR(seconds(pauses[7]), 1, 1e-6);
}

TEST_F(NotificationHubTest, AChannelIsDroppedAWhileAfterItsLastWaiter) {
  Waiting stays(hub(), "other");
  {
    Waiting one(hub());
    ASSERT_TRUE(one.await_hearing());
    EXPECT_EQ(hub().channels(), 2U);
  }
  EXPECT_EQ(hub().channels(), 2U);  // somebody may come back
  Waiting back(hub());
  EXPECT_TRUE(back.waiter().subscribed());
  back.leave();
  EXPECT_TRUE(eventually([&] { return hub().channels() == 1; }));
  EXPECT_TRUE(eventually([&] { return !server_.is_subscribed("c"); }));
  EXPECT_TRUE(server_.is_subscribed("other"));
  Waiting again(hub());
  EXPECT_TRUE(again.await_hearing());
}

}  // namespace
}  // namespace lockbench::redis
