#include "strategies/redis/client/notification_hub.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <set>
#include <string>

#include "strategies/redis/client/connection.h"
#include "tests/support/eventually.h"

namespace lockbench::redis {
namespace {

using namespace std::chrono_literals;
using test::eventually;

/// An in-memory server that only forwards messages, in real time, and the factory of its
/// subscribers. Serves one connection at a time. Thread-safe.
class FakePubSub : public ConnectionFactory {
 public:
  std::unique_ptr<Connection> make(const Endpoint&, const Timeouts&, Env&) override {
    return nullptr;
  }
  std::unique_ptr<Subscriber> make_subscriber(const Endpoint&, const Timeouts&, Env&) override {
    return std::make_unique<Client>(*this);
  }

  /// Each subscription breaks the connection, as without permission.
  void refuse_subscriptions() {
    const std::scoped_lock lock(mutex_);
    refuses_ = true;
  }
  void publish(const std::string& channel) {
    const std::scoped_lock lock(mutex_);
    if (channels_.contains(channel)) push({Push::Kind::message, channel});
  }
  int connections() {
    const std::scoped_lock lock(mutex_);
    return connections_;
  }

 private:
  class Client : public Subscriber {
   public:
    explicit Client(FakePubSub& server) : server_(server) {}

    StoreResult<void> connect(const std::stop_token&) override {
      const std::scoped_lock lock(server_.mutex_);
      if (!server_.connected_) ++server_.connections_;
      server_.connected_ = true;
      return {};
    }

    StoreResult<void> subscribe(const std::string& channel) override {
      const std::scoped_lock lock(server_.mutex_);
      if (!server_.connected_) return gone();
      if (server_.refuses_) {
        server_.connected_ = false;
        server_.changed_.notify_all();
        return gone();
      }
      server_.channels_.insert(channel);
      server_.push({Push::Kind::subscribed, channel});
      return {};
    }

    StoreResult<void> unsubscribe(const std::string& channel) override {
      const std::scoped_lock lock(server_.mutex_);
      if (!server_.connected_) return gone();
      server_.channels_.erase(channel);
      server_.push({Push::Kind::unsubscribed, channel});
      return {};
    }

    StoreResult<std::optional<Push>> receive(Duration longest,
                                             const std::stop_token& stop) override {
      std::unique_lock lock(server_.mutex_);
      server_.changed_.wait_for(lock, stop, longest,
                                [this] { return !server_.connected_ || !server_.pushes_.empty(); });
      if (!server_.connected_ || stop.stop_requested()) return gone();
      if (server_.pushes_.empty()) return std::nullopt;
      Push push = std::move(server_.pushes_.front());
      server_.pushes_.pop_front();
      return push;
    }

   private:
    static tl::unexpected<StoreError> gone() {
      return tl::unexpected(StoreError{StoreError::Kind::unanswered, "fake:1: gone"});
    }

    FakePubSub& server_;
  };

  void push(Push push) {
    pushes_.push_back(std::move(push));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool connected_ = false;
  bool refuses_ = false;
  int connections_ = 0;
  std::set<std::string> channels_;
  std::deque<Push> pushes_;
};

/// One client's wait, with its event and Env.
class Waiting {
 public:
  explicit Waiting(NotificationHub& hub, const std::string& channel = "c")
      : waiter_(std::in_place, hub, channel, *event_) {}

  NotificationHub::Waiter& waiter() { return *waiter_; }
  void leave() { waiter_.reset(); }
  bool await_hearing() {
    const bool subscribed = eventually([this] { return waiter_->subscribed(); });
    is_woken(0ms);  // by the confirmation, which is not a message
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

/// Notes how long the hub wants to pause, but ends the pause early. Its backoff is the longest.
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

/// Two clients that wait on one channel; the first began earlier.
class TwoWait : public NotificationHubTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(first_.await_hearing());
    ASSERT_TRUE(second_.await_hearing());
  }

  Waiting first_{hub()}, second_{hub()};
};

/// Either it took the lock or found it taken.
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

}  // namespace
}  // namespace lockbench::redis
