#pragma once

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "strategies/redis/client/connection.h"

namespace lockbench::redis {

/// Tells the waiting clients of one process that a lock was released, over one subscribing
/// connection for all of them (Redisson's LockPubSub). One message wakes one client, the one that
/// waits for longest; one that leaves without the lock passes an unused wake-up on. A channel that
/// nobody waits on is dropped after a while. When the connection breaks everybody is woken, as
/// messages may have been lost, and it is made anew. One thread, from the first waiter on.
/// Thread-safe; outlives its places.
class NotificationHub {
 public:
  NotificationHub(const Endpoint& endpoint, Duration command_timeout, ConnectionFactory& factory,
                  std::unique_ptr<Env> env);
  NotificationHub(const NotificationHub&) = delete;
  NotificationHub& operator=(const NotificationHub&) = delete;

  /// One client's wait for one channel's messages, from construction to destruction. Used by one
  /// thread.
  class Place {
   public:
    /// `event` is set by a message, and when the subscription begins or ends to hold.
    Place(NotificationHub& hub, std::string channel, Event& event);
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place();

    /// Whether messages come in. What was released before that is not heard of.
    bool hears() const;
    /// After a wait: the lock is asked for next, by a wake-up if there was one.
    void woken();
    /// Asked for, and it was another's, whose release will be told: that wake-up is used.
    void found_taken();
    /// The client has the lock: its wake-up needs not be passed on.
    void satisfied() { satisfied_ = true; }

   private:
    friend class NotificationHub;
    NotificationHub& hub_;
    const std::string channel_;
    Event& event_;
    bool satisfied_ = false;
    // By a message; guarded by the hub's mutex.
    bool signalled_ = false;  ///< not acted on yet
    bool asking_ = false;     ///< acted on, but the answer is not here yet
  };

  /// Channels that are subscribed to, or asked for.
  std::size_t channels() const;

 private:
  struct Channel {
    std::list<Place*> places;  ///< in the order in which they came
    bool heard = false;
    std::optional<TimePoint> unused_since{};  ///< as the listening thread found it
  };

  void join(Place& place);
  void leave(Place& place);
  static void wake_one(Channel& channel);
  void listen(const std::stop_token& stop);
  /// On a connection that is made if there is none.
  StoreResult<std::optional<Push>> next_push(const std::stop_token& stop);
  void subscribe_to_all();
  void take(const Push& push);
  void disconnected();
  void drop_unused();

  std::unique_ptr<Env> env_;
  std::unique_ptr<Subscriber> subscriber_;
  mutable std::mutex mutex_;
  std::map<std::string, Channel> channels_;
  bool connected_ = false;
  std::jthread thread_;  ///< last: joined before what it uses goes
};

}  // namespace lockbench::redis
