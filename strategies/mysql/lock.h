#pragma once

#include "strategies/mysql/client/session.h"
#include "strategies/sql/lock.h"

namespace lockbench::mysql {

/// How long the server is to wait for a lock until then, rounded up so that no client gives up
/// early; nearly a year without a deadline.
Duration time_to_wait(Env& env, TimePoint deadline);

/// A lock of the server's queue, on one of our sessions.
template <class Lock>
class OnMysql : public Lock {
 public:
  explicit OnMysql(const Context& context)
      : Lock(context, sql::make_session<Session, parse_endpoint>) {}
};

}  // namespace lockbench::mysql
