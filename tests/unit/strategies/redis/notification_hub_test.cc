#include "strategies/redis/client/notification_hub.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "strategies/redis/client/connection.h"
#include "tests/support/eventually.h"

namespace lockbench::redis {
namespace {

using namespace std::chrono_literals;
using test::eventually;

/// A server to which each subscription breaks the connection, as without permission, and the
/// factory of its subscribers. Thread-safe.
class RefusingPubSub : public ConnectionFactory {
 public:
  std::unique_ptr<Connection> make(const Endpoint&, const Timeouts&, Env&) override {
    return nullptr;
  }
  std::unique_ptr<Subscriber> make_subscriber(const Endpoint&, const Timeouts&, Env&) override {
    return std::make_unique<Client>(*this);
  }

  int connections() {
    const std::scoped_lock lock(mutex_);
    return connections_;
  }

 private:
  class Client : public Subscriber {
   public:
    explicit Client(RefusingPubSub& server) : server_(server) {}

    StoreResult<void> connect(const std::stop_token&) override {
      const std::scoped_lock lock(server_.mutex_);
      if (!server_.connected_) ++server_.connections_;
      server_.connected_ = true;
      return {};
    }

    StoreResult<void> subscribe(const std::string&) override {
      const std::scoped_lock lock(server_.mutex_);
      server_.connected_ = false;
      server_.changed_.notify_all();
      return gone();
    }

    StoreResult<void> unsubscribe(const std::string&) override { return gone(); }

    StoreResult<std::optional<Push>> receive(Duration longest,
                                             const std::stop_token& stop) override {
      std::unique_lock lock(server_.mutex_);
      server_.changed_.wait_for(lock, stop, longest, [this] { return !server_.connected_; });
      if (!server_.connected_ || stop.stop_requested()) return gone();
      return std::nullopt;
    }

   private:
    static tl::unexpected<StoreError> gone() {
      return tl::unexpected(StoreError{StoreError::Kind::unanswered, "fake:1: gone"});
    }

    RefusingPubSub& server_;
  };

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool connected_ = false;
  int connections_ = 0;
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

TEST(NotificationHub, BacksOffFromAServerThatRefuses) {
  RefusingPubSub server;
  std::vector<Duration> pauses;
  {
    NotificationHub hub(Endpoint{}, 1s, server, std::make_unique<PausingWorld>(pauses));
    const auto env = make_system_env(1);
    const auto event = env->make_event();
    const NotificationHub::Waiter waiter(hub, "c", *event);
    ASSERT_TRUE(eventually([&] { return server.connections() > 8; }));
    EXPECT_FALSE(waiter.subscribed());
  }
  ASSERT_GE(pauses.size(), 8U);
  EXPECT_NEAR(seconds(pauses[0]), 0.01, 1e-6);
  EXPECT_NEAR(seconds(pauses[7]), 1, 1e-6);
}

}  // namespace
}  // namespace lockbench::redis
