#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "strategies/env.h"
#include "strategies/services.h"

namespace lockbench::zookeeper {

class Session;

/// Knows how long the server keeps this process's sessions that hold leases, by pinging the server
/// where no other request is sent. The client library pings too, but does not report when. One
/// thread, started by the first session. Thread-safe; outlives its sessions.
class SessionKeeper {
 public:
  explicit SessionKeeper(std::unique_ptr<Env> env);
  SessionKeeper(const SessionKeeper&) = delete;
  SessionKeeper& operator=(const SessionKeeper&) = delete;

  /// Adds a session or changes its TTL. It is checked every sixth of the TTL.
  void add(Session& session, Duration ttl);
  void remove(Session& session);

  /// Calls `close` on another thread, which the destructor waits for: for a session whose server
  /// does not answer.
  void close_later(std::function<void()> close);

 private:
  struct Closing {
    std::shared_ptr<std::atomic<bool>> done;
    std::jthread thread;
  };

  void keep(const std::stop_token& stop);

  std::unique_ptr<Env> env_;
  std::unique_ptr<Event> changed_;
  std::mutex mutex_;
  std::map<Session*, Duration> ticks_;
  std::list<Closing> closings_;
  std::jthread thread_;  ///< last: joined before the members that it uses are destroyed
};

/// The run's keeper.
SessionKeeper& session_keeper(Services& services);

}  // namespace lockbench::zookeeper
