#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/postgres/client/session.h"

namespace lockbench::postgres {

/// The result of an attempt at a lock that waits at the server.
struct Grant {
  enum class Kind { granted, taken, stopped, deadlock };
  Kind kind = Kind::taken;
  std::uint64_t fencing = 0;
};

/// The common part of locks that wait in the server's queue and end with their session. Such a
/// lease does not expire: it is lost when the client finds the connection lost.
class ServerQueueLock : public LockStrategy {
 public:
  explicit ServerQueueLock(const Context& context) : env_(context.env) {}

  AcquireResult acquire(const AcquireRequest& request) final;

 protected:
  /// The session for the next lock.
  virtual Session& session() = 0;
  /// Waits for the lock if `may_wait`. Schema and lock_timeout are already set.
  virtual StoreResult<Grant> take(const AcquireRequest& request, bool may_wait) = 0;
  /// Called after session() was granted the lock of `lease`.
  virtual void granted(const Lease& lease) = 0;

  Env& env() { return env_; }

 private:
  StoreResult<void> prepare(const AcquireRequest& request, bool may_wait);

  Env& env_;
};

/// Converts the answer of a statement that returns a fencing number if it is granted.
StoreResult<Grant> to_grant(const StoreResult<Answer>& answer, Session& session);

/// A statement on a session with or without a pooler, with `longest` in milliseconds as its last
/// parameter, for lock_timeout: it waits no longer if another session has locked the row.
StoreResult<Answer> call_once(Session& session, Statement (*statement)(const std::string&),
                              const std::string& schema, std::string_view key,
                              std::vector<std::string> parameters, Duration longest,
                              const std::stop_token& stop);

}  // namespace lockbench::postgres
