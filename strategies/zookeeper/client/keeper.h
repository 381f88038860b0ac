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

/// Knows until when the server keeps the sessions of one process whose leases are held, by asking
/// for a sign of life where nothing else is asked for. The client library pings too, but tells
/// nobody when. One thread, from the first session on. Thread-safe; outlives its sessions.
class SessionKeeper {
 public:
  explicit SessionKeeper(std::unique_ptr<Env> env);
  SessionKeeper(const SessionKeeper&) = delete;
  SessionKeeper& operator=(const SessionKeeper&) = delete;

  /// Or changes its ttl, a sixth of which is the longest that it is late.
  void add(Session& session, Duration ttl);
  void remove(Session& session);

  /// Lets `ending` go on a thread of its own, which is waited for in the end: for a session whose
  /// server may not answer any more.
  void bury(std::function<void()> ending);

 private:
  struct Burial {
    std::shared_ptr<std::atomic<bool>> over;
    std::jthread thread;
  };

  void keep(const std::stop_token& stop);

  std::unique_ptr<Env> env_;
  std::unique_ptr<Event> changed_;
  std::mutex mutex_;
  std::map<Session*, Duration> ticks_;
  std::list<Burial> burials_;
  std::jthread thread_;  ///< last: joined before what it uses goes
};

/// The run's only one, and a world for a session's calling thread.
SessionKeeper& session_keeper(Services& services);
std::unique_ptr<Env> world_of_callbacks(Services& services);

}  // namespace lockbench::zookeeper
