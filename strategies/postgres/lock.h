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

/// The common part of locks that end with their session, and mostly wait in the server's queue.
/// Such a lease does not expire: it is lost when the client finds the connection lost.
class ServerQueueLock : public LockStrategy {
 public:
  explicit ServerQueueLock(const Context& context) : env_(context.env) {}

  AcquireResult acquire(const AcquireRequest& request) override;

 protected:
  /// The session for the next lock.
  virtual Session& session() = 0;
  /// Before each attempt: settings of the session, its schema and, if it waits, lock_timeout.
  virtual StoreResult<void> prepare(const AcquireRequest& request, bool may_wait);
  /// Waits for the lock if `may_wait`, after prepare().
  virtual StoreResult<Grant> take(const AcquireRequest& request, bool may_wait) = 0;
  /// Called after session() was granted the lock of `lease`.
  virtual void granted(const Lease& lease) = 0;

  StoreResult<Grant> attempt(const AcquireRequest& request, bool may_wait);
  /// Of a grant; calls granted().
  Lease lease_of(const AcquireRequest& request, const Grant& grant);
  /// The value of lock_timeout for a wait until then, in milliseconds. 0 means for ever.
  std::int64_t lock_timeout(TimePoint deadline);

  Env& env() { return env_; }

 private:
  Env& env_;
};

/// Converts the answer of a statement that returns a fencing number if it is granted.
StoreResult<Grant> to_grant(const StoreResult<Answer>& answer, Session& session);

/// A statement on a session with or without a pooler. It is repeated a few times if its transaction
/// was not serializable.
StoreResult<Answer> call_once(Session& session, const Statement& statement,
                              const std::string& schema, std::string_view key,
                              const std::vector<std::string>& parameters,
                              const std::stop_token& stop);

}  // namespace lockbench::postgres
