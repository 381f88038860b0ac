#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "strategies/carrier.h"
#include "strategies/redis/client/connection.h"

namespace lockbench::redis {

/// Tells the waiting clients of one process about released locks, over one subscribed connection
/// (Redisson's LockPubSub). One message wakes one client, the one that has waited longest; a client
/// that leaves without the lock passes an unused wake-up on. A channel without waiters is dropped
/// after a while. When the connection breaks, all clients are woken, as messages may have been
/// lost, and the hub reconnects. One task, started beside the first waiter. Thread-safe; outlives
/// its waiters.
class NotificationHub {
 public:
  NotificationHub(const Endpoint& endpoint, Duration command_timeout, ConnectionFactory& factory,
                  std::unique_ptr<Env> env)
      : env_(std::move(env)),
        subscriber_(factory.make_subscriber(endpoint, command_timeout, *env_)) {}
  NotificationHub(const NotificationHub&) = delete;
  NotificationHub& operator=(const NotificationHub&) = delete;

  class Waiter;

 private:
  struct Channel {
    std::list<Waiter*> waiters;  ///< oldest first
    bool subscribed = false;
    std::optional<TimePoint> unused_since{};  ///< as noticed by the task
  };

 public:
  /// One client's wait for the messages of one channel, from construction to destruction. Used by
  /// one client.
  class Waiter {
   public:
    /// `event` is set by a message, and when the subscription begins or is lost.
    Waiter(NotificationHub& hub, const std::string& channel, Event& event)
        : hub_(hub), event_(event) {
      hub_.join(*this, channel);
    }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter() { hub_.leave(*this); }

    /// Whether messages are received. Releases before the subscription are missed.
    bool subscribed() const {
      const std::scoped_lock lock(hub_.mutex_);
      return channel_->subscribed;
    }
    /// To be called after a wait: the client asks for the lock next.
    void woken() {
      const std::scoped_lock lock(hub_.mutex_);
      if (std::exchange(signalled_, false)) asking_ = true;
    }
    /// The client asked in vain; the wake-up is used up, as the holder's release will be announced.
    void found_taken() {
      const std::scoped_lock lock(hub_.mutex_);
      asking_ = false;
    }
    /// The client has the lock: its wake-up need not be passed on.
    void satisfied() { satisfied_ = true; }

   private:
    friend class NotificationHub;
    NotificationHub& hub_;
    Event& event_;
    bool satisfied_ = false;
    // Guarded by the hub's mutex.
    Channel* channel_ = nullptr;  ///< stays while it has waiters
    std::list<Waiter*>::iterator place_;
    // A wake-up by a message.
    bool signalled_ = false;  ///< the client has not reacted yet
    bool asking_ = false;     ///< the client is asking for the lock
  };

  /// The number of channels with a subscription or a request for one.
  std::size_t channels() const {
    const std::scoped_lock lock(mutex_);
    return channels_.size();
  }

 private:
  void join(Waiter& waiter, const std::string& channel);
  void leave(Waiter& waiter);
  static void wake_one(Channel& channel);
  void listen(const std::stop_token& stop);
  /// Connects if there is no connection, and subscribes to all channels.
  StoreResult<std::optional<Push>> next_push(const std::stop_token& stop);
  void take(const Push& push);
  void disconnected();
  void drop_unused();

  std::unique_ptr<Env> env_;
  std::unique_ptr<Subscriber> subscriber_;
  /// Also held to subscribe to a single channel, which does not wait.
  mutable std::mutex mutex_;
  std::map<std::string, Channel> channels_;
  bool connected_ = false;
  std::unique_ptr<Task> task_;  ///< last: ends before the members that it uses are destroyed
};

}  // namespace lockbench::redis
