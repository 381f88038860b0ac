#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/postgres/client/session.h"
#include "strategies/sql/lock.h"

namespace lockbench::postgres {

using sql::Grant;
using sql::to_grant;

/// For sql::ServerQueueLock.
std::unique_ptr<sql::Session> make_session(const Context& context);

/// The value of lock_timeout for a wait until then, in milliseconds. 0 means for ever.
std::int64_t lock_timeout(Env& env, TimePoint deadline);

/// A lock of the server's queue, on one of our sessions: its schema and, if it waits, lock_timeout
/// are set before each attempt.
template <class Lock>
class OnPostgres : public Lock {
 public:
  explicit OnPostgres(const Context& context) : Lock(context, make_session) {}

 protected:
  Session& session() { return static_cast<Session&>(Lock::session()); }

  StoreResult<void> prepare(const AcquireRequest& request, bool may_wait) override {
    auto ready = session().use_schema(schema_of_key(request.key), request.key, request.stop);
    if (ready && may_wait) {
      ready = session().set_lock_timeout(lock_timeout(this->env(), request.deadline), request.key,
                                         request.stop);
    }
    return ready;
  }
};

/// A statement on a session with or without a pooler. It is repeated a few times if its transaction
/// was not serializable.
StoreResult<Answer> call_once(Session& session, const Statement& statement,
                              const std::string& schema, std::string_view key,
                              const std::vector<std::string>& parameters,
                              const std::stop_token& stop);

}  // namespace lockbench::postgres
