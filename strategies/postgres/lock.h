#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/postgres/client/session.h"

namespace lockbench::postgres {

/// What an attempt at a lock that waits at the server came to.
struct Grant {
  enum class Kind { granted, taken, stopped };
  Kind kind = Kind::taken;
  std::uint64_t fencing = 0;
};

/// What the locks share that wait at the server, in its queue, and that end with their session.
/// Such a lock has no validity that could end: its lease is lost when the connection is found to
/// be.
class QueueLock : public LockStrategy {
 public:
  explicit QueueLock(const Context& context) : env_(context.env) {}

  AcquireResult acquire(const AcquireRequest& request) final;
  RenewResult renew(const Lease& /*lease*/, Duration /*ttl*/) final {
    return {RenewOutcome::unsupported, {}};
  }

 protected:
  /// Where the next lock is to live.
  virtual Session& session() = 0;
  /// Waits for the lock if `may_wait`. The session has its schema and its lock_timeout.
  virtual StoreResult<Grant> take(const AcquireRequest& request, bool may_wait) = 0;
  /// `lease` was granted just now by session().
  virtual void granted(const Lease& lease) = 0;

  Env& env() { return env_; }

 private:
  StoreResult<void> prepare(const AcquireRequest& request, bool may_wait);

  Env& env_;
};

/// A statement's answer as a grant: what was taken at once or in time, or not.
StoreResult<Grant> to_grant(const StoreResult<Answer>& answer, const Session& session);

/// What breaks every lock on one PostgreSQL that lives in a session, behind its own weaknesses.
std::vector<KnownHazard> with_session_hazards(std::vector<KnownHazard> own);

}  // namespace lockbench::postgres
