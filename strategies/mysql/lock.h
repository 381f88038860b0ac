#pragma once

#include <cstdint>
#include <memory>

#include "strategies/mysql/client/session.h"
#include "strategies/sql/lock.h"
#include "strategies/store.h"

namespace lockbench::mysql {

/// For sql::ServerQueueLock.
std::unique_ptr<sql::Session> make_session(const Context& context);

/// How long the server is to wait for a lock until then, rounded up so that no client gives up
/// early; a year without a deadline.
Duration time_to_wait(Env& env, TimePoint deadline);

/// A lock of the server's queue, on one of our sessions.
template <class Lock>
class OnMysql : public Lock {
 public:
  explicit OnMysql(const Context& context) : Lock(context, make_session) {}

 protected:
  StoreResult<void> prepare(const AcquireRequest& request, bool /*may_wait*/) override {
    return this->session().use_schema(schema_of_key(request.key), request.key, request.stop);
  }
};

}  // namespace lockbench::mysql
