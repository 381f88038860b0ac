#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "strategies/carrier.h"
#include "strategies/env.h"
#include "strategies/services.h"
#include "strategies/transport/poller.h"

namespace lockbench::zookeeper {

class Session;

/// Looks after all sessions of a run while their clients are busy with other things: pings,
/// reconnects, and receives the events that clients wait for. One task, started beside the client
/// with the first session. Thread-safe; outlives its sessions.
class SessionKeeper {
 public:
  explicit SessionKeeper(std::unique_ptr<Env> env) : env_(std::move(env)) {}
  SessionKeeper(const SessionKeeper&) = delete;
  SessionKeeper& operator=(const SessionKeeper&) = delete;

  /// The error says why sessions cannot be looked after.
  tl::expected<void, std::string> add(Session& session);
  /// Waits while it is attended.
  void remove(Session& session);

  /// Calls the session, which was added, as soon as its connection has input; once.
  void watch(Session& session, int descriptor);
  void unwatch(int descriptor) { poller_->unwatch(descriptor); }

 private:
  void keep(const std::stop_token& stop);
  /// Without the lock meanwhile.
  void attend(Session* session, std::unique_lock<std::mutex>& lock);
  /// When it is attended next.
  void schedule(Session& session, TimePoint at);

  std::unique_ptr<Env> env_;
  std::unique_ptr<Poller> poller_;  ///< from the first add() on
  std::mutex mutex_;
  /// Those due at the same time come in the order in which they were scheduled.
  std::multimap<TimePoint, Session*> by_time_;
  std::map<Session*, std::multimap<TimePoint, Session*>::iterator> due_;  ///< the same
  Session* attended_ = nullptr;
  std::unique_ptr<Task> task_;  ///< last: ends before the members that it uses are destroyed
};

/// The run's keeper.
SessionKeeper& session_keeper(Services& services);

}  // namespace lockbench::zookeeper
