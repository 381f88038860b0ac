#include "strategies/postgres/client/session.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include "strategies/postgres/client/schema.h"

namespace lockbench::postgres {

void Session::Finish::operator()(pg_conn* connection) const noexcept { PQfinish(connection); }
void Session::Clear::operator()(pg_result* result) const noexcept { PQclear(result); }

Session::Session(Endpoint endpoint, Duration command_timeout, Env& env)
    : endpoint_(std::move(endpoint)), timeout_(command_timeout), env_(env) {}

Session::~Session() { close(); }

void Session::close() noexcept {
  connection_.reset();
  prepared_.clear();
  schema_.clear();
  lock_timeout_ = -1;
  for (const auto& lease : bound_) lease->mark_lost(env_.now());
  bound_.clear();
}

void Session::unbind(const std::shared_ptr<LeaseState>& lease) { std::erase(bound_, lease); }

tl::unexpected<StoreError> Session::fail(StoreError::Kind kind, std::string_view why) const {
  return tl::unexpected(StoreError{kind, fmt::format("{}: {}", endpoint_.display, why)});
}

StoreResult<Answer> Session::call(const Statement& statement, std::string_view key,
                                  std::span<const std::string> parameters,
                                  const Patience& patience) {
  const CommandInfo told{.store = "postgres",
                         .endpoint = endpoint_.display,
                         .name = statement.name,
                         .key = key,
                         .blocks = statement.waits};
  StoreResult<Answer> answer = fail(StoreError::Kind::not_sent, "the connection was cut");
  if (env_.before_command(told) == CommandFate::drop) {
    close();
  } else if (auto connected = connect(patience.stop); !connected) {
    answer = tl::unexpected(std::move(connected.error()));
  } else {
    Patience own = patience;
    if (statement.waits) own.stop = env_.waiting_stop(patience.stop);
    answer = exchange(statement, key, parameters, own);
  }
  const bool answered = answer || answer.error().kind == StoreError::Kind::rejected;
  const bool in_vain = statement.waits && answered && !(answer && answer->done());
  const CommandFate fate = env_.after_command(told, in_vain    ? CommandEnd::in_vain
                                                    : answered ? CommandEnd::answered
                                                               : CommandEnd::lost);
  const bool over = answer && answer->kind == Answer::Kind::session_over;
  if (!answered || over) close();
  if (answered && fate == CommandFate::drop) {
    close();
    return fail(StoreError::Kind::unanswered, "the answer was lost");
  }
  return answer;
}

StoreResult<Answer> Session::exchange(const Statement& statement, std::string_view key,
                                      std::span<const std::string> parameters,
                                      const Patience& patience) {
  if (statement.how == Statement::How::prepared) {
    auto ready = prepare(statement.sql, patience);
    if (!ready || !ready->done()) return ready;
  }
  if (!send(statement, parameters)) {
    return broken(StoreError::Kind::unanswered);
  }
  const auto result = collect(statement.waits, key, patience);
  if (!result) return tl::unexpected(result.error());
  return understood(**result, patience.stop);
}

StoreResult<Answer> Session::prepare(const std::string& sql, const Patience& patience) {
  if (prepared_.contains(sql)) return Answer{};
  const std::string name = fmt::format("lockbench_{}", prepared_.size());
  // Until this is done, the statement itself has not been sent.
  if (PQsendPrepare(connection_.get(), name.c_str(), sql.c_str(), 0, nullptr) != 1) {
    return broken(StoreError::Kind::not_sent);
  }
  StoreResult<Answer> answer = Answer{};
  if (const auto result = collect(false, {}, patience); !result) {
    answer = tl::unexpected(result.error());
  } else {
    answer = understood(**result, patience.stop);
  }
  if (answer && answer->done()) prepared_.emplace(sql, name);
  if (!answer && answer.error().kind == StoreError::Kind::unanswered) {
    answer.error().kind = StoreError::Kind::not_sent;
  }
  return answer;
}

StoreResult<void> Session::use_schema(const std::string& schema, std::string_view key,
                                      const std::stop_token& stop) {
  if (schema == schema_) return {};
  const auto answer =
      call(make_schema(schema, timeout_), key, {}, {.wait_until = {}, .stop = stop});
  if (!answer) return tl::unexpected(answer.error());
  if (!answer->done()) return fail(StoreError::Kind::rejected, "the schema could not be made");
  schema_ = schema;
  return {};
}

StoreResult<void> Session::set_lock_timeout(std::int64_t milliseconds, std::string_view key,
                                            const std::stop_token& stop) {
  // A little more than asked for is no reason for a round trip, as long as it is a bound.
  constexpr std::int64_t kTolerance = 2;
  const bool bounded = milliseconds > 0 && lock_timeout_ >= milliseconds;
  if (milliseconds == lock_timeout_) return {};
  if (bounded && lock_timeout_ <= milliseconds + kTolerance) return {};
  static const Statement statement{.name = "set_config",
                                   .sql = "SELECT set_config('lock_timeout', $1, false)"};
  const std::string value = std::to_string(milliseconds);
  const auto answer = call(statement, key, {&value, 1}, {.wait_until = {}, .stop = stop});
  if (!answer) return tl::unexpected(answer.error());
  if (!answer->done()) return fail(StoreError::Kind::rejected, "lock_timeout could not be set");
  lock_timeout_ = milliseconds;
  return {};
}

}  // namespace lockbench::postgres
