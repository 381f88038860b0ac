#include "strategies/postgres/lock.h"

#include <algorithm>
#include <limits>

namespace lockbench::postgres {

std::unique_ptr<sql::Session> make_session(const Context& context) {
  return std::make_unique<Session>(endpoints_of(context, parse_endpoint).front(),
                                   context.options.timeouts(), context.env);
}

std::int64_t lock_timeout(Env& env, TimePoint deadline) {
  if (deadline == TimePoint::max()) return 0;
  // Rounded up, so that no client gives up early.
  const std::int64_t left = ceil_milliseconds(std::max(deadline - env.now(), Duration(1)));
  return std::min<std::int64_t>(left, std::numeric_limits<std::int32_t>::max());
}

StoreResult<Answer> call_once(Session& session, const Statement& statement,
                              const std::string& schema, std::string_view key,
                              const std::vector<std::string>& parameters,
                              const std::stop_token& stop) {
  // With a stricter default of the user's than needed.
  constexpr int kAttempts = 5;
  if (auto ready = session.have_schema(schema, key, stop); !ready) {
    return tl::unexpected(std::move(ready.error()));
  }
  for (int attempt = 1;; ++attempt) {
    auto answer = session.call(statement, key, parameters, {.wait_until = {}, .stop = stop});
    if (!answer) return answer;
    if (answer->kind == Answer::Kind::session_over) {
      return tl::unexpected(to_grant(answer, session).error());
    }
    if (answer->kind != Answer::Kind::not_serializable || attempt == kAttempts) return answer;
  }
}

}  // namespace lockbench::postgres
