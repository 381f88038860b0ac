#pragma once

#include <cstdint>

#include "strategies/postgres/client/session.h"
#include "strategies/sql/lock.h"

namespace lockbench::postgres {

/// The value of lock_timeout for a wait until then, in milliseconds. 0 means for ever.
std::int64_t lock_timeout(Env& env, TimePoint deadline);

/// A lock of the server's queue, on one of our sessions: its schema and, if it waits, lock_timeout
/// are set before each attempt.
template <class Lock>
class OnPostgres : public Lock {
 public:
  explicit OnPostgres(const Context& context)
      : Lock(context, sql::make_session<Session, parse_endpoint>) {}

 protected:
  Session& session() { return static_cast<Session&>(Lock::session()); }

  StoreResult<void> prepare(const AcquireRequest& request, bool may_wait) override {
    auto ready = Lock::prepare(request, may_wait);
    if (ready && may_wait) {
      ready = session().set_lock_timeout(lock_timeout(this->env(), request.deadline), request.key,
                                         request.stop);
    }
    return ready;
  }
};

}  // namespace lockbench::postgres
