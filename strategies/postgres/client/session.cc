#include "strategies/postgres/client/session.h"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "strategies/number.h"

namespace lockbench::postgres {
namespace {

constexpr std::string_view kTransactionPooler =
    "a transaction pooler gives one connection's statements to different server processes: connect "
    "directly, or use session pooling";

std::string_view field(const PGresult& result, int name) {
  const char* const text = PQresultErrorField(&result, name);
  return text == nullptr ? "" : text;
}

/// What an error means to a lock, if anything.
std::optional<Answer::Kind> meaning_of_code(const PGresult& error) {
  const std::string_view code = field(error, PG_DIAG_SQLSTATE);
  if (code == "55P03") return Answer::Kind::lock_not_available;
  if (code == "40P01") return Answer::Kind::deadlock;
  if (code == "40001") return Answer::Kind::not_serializable;
  if (code == "57014") return Answer::Kind::cancelled;
  // Ended by an administrator, or a shutdown.
  if (code.starts_with("57P")) return Answer::Kind::session_over;
  return std::nullopt;
}

/// Creates the objects for a run's locks unless they exist: a sequence for fencing numbers, tables
/// of rows to lock, of leases and records, and of numbers. Names the session after the run, whose
/// schema is spared as long as it lasts (a transaction pooler passes the name on). Answers with the
/// server process. `before` and `after` are further statements, such as settings. A crash of the
/// server may undo what open transactions drew of the sequence, so each new session draws more than
/// that here, where a commit follows.
Statement make_schema(const std::string& schema, const std::string& before,
                      const std::string& after) {
  // The lock keeps two clients from creating it at the same time, when one would fail. Its pair of
  // numbers ("lock", "bnch") cannot collide with the single numbers of keys.
  return {.name = "CREATE SCHEMA",
          .sql = fmt::format(R"(
SET application_name = '{0}';
{1}
SELECT pg_advisory_xact_lock(1819239275, 1651401576);
CREATE SCHEMA IF NOT EXISTS {0};
CREATE SEQUENCE IF NOT EXISTS {0}.fencing CACHE 1;
SELECT max(nextval('{0}.fencing')) FROM generate_series(1, 1000);
CREATE TABLE IF NOT EXISTS {0}.lock_row (key text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS {0}.lease (key text PRIMARY KEY, owner text, locked_at timestamptz NOT NULL, lock_until timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS {0}.counted (key text PRIMARY KEY, version bigint NOT NULL, value bigint NOT NULL);
CREATE TABLE IF NOT EXISTS {0}.observed_lease (key text PRIMARY KEY, record text NOT NULL);
{2}
SELECT pg_backend_pid();
)",
                             schema, before, after),
          .how = Statement::How::script};
}

/// With those of the user's defaults overridden that matter to the statements, which find the
/// tables by their bare names.
Statement make_and_use_schema(const std::string& schema, Duration timeout) {
  return make_schema(schema,
                     fmt::format("SET default_transaction_isolation = 'read committed';\n"
                                 "SET lock_timeout = {};",
                                 ceil_milliseconds(timeout)),
                     fmt::format("SET search_path = {};", schema));
}

/// For this transaction only.
Statement make_only_schema(const std::string& schema, Duration timeout) {
  return make_schema(schema,
                     fmt::format("SET LOCAL lock_timeout = {};", ceil_milliseconds(timeout)), "");
}

}  // namespace

Session::Session(Endpoint endpoint, const Timeouts& timeouts, Env& env)
    : sql::Session("postgres", endpoint.display, timeouts, env),
      endpoint_(std::move(endpoint)),
      connection_(nullptr, PQfinish) {}

Session::~Session() { Session::close(); }

void Session::close() noexcept {
  connection_.reset();
  prepared_.clear();
  process_.clear();
  schema_.clear();
  made_schema_.clear();
  lock_timeout_ = -1;
  lose_bound();
}

StoreResult<Answer> Session::exchange(const Statement& statement, std::string_view key,
                                      std::span<const std::string> parameters,
                                      const Patience& patience) {
  if (prepares(statement)) {
    auto ready = prepare(statement.sql, patience);
    if (!ready || !ready->done()) return ready;
  }
  if (!send(statement, parameters)) return broken(StoreError::Kind::unanswered);
  return answer_to(statement.waits, key, patience);
}

StoreResult<Answer> Session::prepare(const std::string& sql, const Patience& patience) {
  if (prepared_.contains(sql)) return Answer{};
  const std::string name = fmt::format("lockbench_{}", prepared_.size());
  // Until this is done, the statement itself is not sent.
  if (PQsendPrepare(connection_.get(), name.c_str(), sql.c_str(), 0, nullptr) != 1) {
    return broken(StoreError::Kind::not_sent);
  }
  auto answer = answer_to(false, {}, patience);
  if (answer && answer->done()) prepared_.emplace(sql, name);
  return before_request(std::move(answer));
}

StoreResult<void> Session::use_schema(const std::string& schema, std::string_view key,
                                      const std::stop_token& stop) {
  if (schema == schema_) return {};
  const auto answer = set_up(make_and_use_schema(schema, timeouts_), key, {}, stop);
  if (!answer) {
    StoreError error = answer.error();
    // The login was answered before. A full pooler accepts clients, and lets them wait.
    if (error.message.find("no answer within") != std::string::npos) {
      error.message +=
          " to the first statement: a pooler whose sessions are all in use makes its clients wait "
          "like this, whatever the lock: it needs a session for each client";
    }
    return tl::unexpected(std::move(error));
  }
  lock_timeout_ = -1;  // this has changed it
  if (!is_served_by(answer->value)) {
    return before_request<void>(not_understood("a process id", *answer));
  }
  // A pooler invents the process id that it announces for a connection.
  const bool pooled = process_ != std::to_string(PQbackendPID(connection_.get()));
  if (pooled) {
    if (auto own = check_pooler(key, stop); !own) return own;
  }
  schema_ = schema;
  return {};
}

StoreResult<void> Session::have_schema(const std::string& schema, std::string_view key,
                                       const std::stop_token& stop) {
  if (schema == made_schema_) return {};
  return set_up(make_only_schema(schema, timeouts_), key, {}, stop)
      .map([&](const Answer& /*process*/) { made_schema_ = schema; });
}

bool Session::is_served_by(const std::string& process) {
  process_ = process;
  return parse_number<std::uint64_t>(process).has_value();
}

StoreResult<void> Session::check_pooler(std::string_view key, const std::stop_token& stop) {
  // Two connections ask in turn which process serves them. A session pooler gives each its own for
  // good. A transaction pooler gives both the one used last, or changes them.
  constexpr int kRounds = 3;
  // A session pooler may have none left for the second connection; a busy one takes its time.
  constexpr Duration kPatience = std::chrono::seconds(2);
  static const Statement ask{
      .name = "pg_backend_pid", .sql = "SELECT pg_backend_pid()", .how = Statement::How::once};
  Session other(endpoint_, {std::min(timeouts_.answer, kPatience), timeouts_.after_stop}, env_);
  std::string others;
  for (int round = 0; round < kRounds; ++round) {
    const auto theirs = other.call(ask, key, {}, {.wait_until = {}, .stop = stop});
    if (!theirs) return {};
    const auto ours = set_up(ask, key, {}, stop);
    if (!ours) return tl::unexpected(ours.error());
    const bool changed = ours->value != process_ || (!others.empty() && theirs->value != others);
    if (changed || ours->value == theirs->value) {
      return fail(StoreError::Kind::refused, kTransactionPooler);
    }
    others = theirs->value;
  }
  return {};
}

StoreResult<void> Session::set_lock_timeout(std::int64_t milliseconds, std::string_view key,
                                            const std::stop_token& stop) {
  // A timeout that is slightly too long is not worth a round trip.
  constexpr std::int64_t kTolerance = 2;
  const bool bounded = milliseconds > 0 && lock_timeout_ >= milliseconds;
  if (milliseconds == lock_timeout_) return {};
  if (bounded && lock_timeout_ <= milliseconds + kTolerance) return {};
  static const Statement statement{.name = "set_config",
                                   .sql = "SELECT set_config('lock_timeout', $1, false)",
                                   .answered = "SELECT"};
  const std::string value = std::to_string(milliseconds);
  return set_up(statement, key, {&value, 1}, stop).map([&](const Answer& /*done*/) {
    lock_timeout_ = milliseconds;
  });
}

bool Session::send(const Statement& statement, std::span<const std::string> parameters) {
  std::vector<const char*> values;
  values.reserve(parameters.size());
  for (const std::string& parameter : parameters) values.push_back(parameter.c_str());
  const int count = static_cast<int>(values.size());
  pg_conn* const to = connection_.get();
  // Drops unrequested input: it would pass for the answer.
  static_cast<void>(PQisBusy(to));
  received_ = 0;
  if (statement.how == Statement::How::script) return PQsendQuery(to, statement.sql.c_str()) == 1;
  if (prepares(statement)) {
    return PQsendQueryPrepared(to, prepared_.at(statement.sql).c_str(), count, values.data(),
                               nullptr, nullptr, 0) == 1;
  }
  return PQsendQueryParams(to, statement.sql.c_str(), count, nullptr, values.data(), nullptr,
                           nullptr, 0) == 1;
}

StoreResult<bool> Session::await_input(bool unsent, Limits& limits, std::string_view key) {
  const auto events = static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN);
  return await_socket(PQsocket(connection_.get()), events, limits, key).map([&] {
    return PQconsumeInput(connection_.get()) != 0;
  });
}

StoreResult<bool> Session::await_result(Limits& limits, std::string_view key) {
  // Bounded by the limits.
  while (true) {
    const int unsent = PQflush(connection_.get());
    if (unsent < 0) return false;
    if (unsent == 0 && PQisBusy(connection_.get()) == 0) return true;
    auto open = await_input(unsent > 0, limits, key);
    if (!open || !*open) return open;
  }
}

StoreResult<Session::ResultPtr> Session::collect(Limits& limits, std::string_view key) {
  ResultPtr last(nullptr, PQclear);
  for (int results = 0; results <= kMostResults; ++results) {
    const auto open = await_result(limits, key);
    if (!open) return tl::unexpected(open.error());
    if (!*open && last) return last;
    // The last input before the connection's end may say why.
    ResultPtr next(PQgetResult(connection_.get()), PQclear);
    if (!next && !last) return broken(StoreError::Kind::unanswered);
    if (!next) return last;
    if (!*open) return next;
    // Such a result comes again and again until data is copied, which no statement here does.
    const ExecStatusType status = PQresultStatus(next.get());
    if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) break;
    // Keeps the first error.
    if (!last || PQresultStatus(last.get()) != PGRES_FATAL_ERROR) last = std::move(next);
  }
  return fail(StoreError::Kind::unanswered, "unexpected response type");
}

StoreResult<Answer> Session::answer_to(bool waits, std::string_view key, const Patience& patience) {
  Limits limits = limits_of(waits, patience);
  const auto collected = collect(limits, key);
  if (!collected) return tl::unexpected(collected.error());
  pg_result& result = **collected;
  Answer answer;
  const ExecStatusType status = PQresultStatus(&result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
    answer.tag = PQcmdStatus(&result);
    if (PQntuples(&result) > 0 && PQnfields(&result) == 1) {
      answer.value.assign(PQgetvalue(&result, 0, 0),
                          static_cast<std::size_t>(PQgetlength(&result, 0, 0)));
    }
    const std::string_view changed(PQcmdTuples(&result));
    const auto rows = parse_number<std::uint64_t>(changed.empty() ? "0" : changed);
    if (!rows) return fail(StoreError::Kind::unanswered, "the answer has too many rows");
    answer.rows = *rows;
    return answer;
  }
  if (const auto meaning = meaning_of(meaning_of_code(result), waits, limits)) {
    return Answer{.kind = *meaning};
  }
  if (PQstatus(connection_.get()) == CONNECTION_BAD) return broken(StoreError::Kind::unanswered);
  // Another session's statement has this name, or ours is prepared in another session.
  const std::string_view code = field(result, PG_DIAG_SQLSTATE);
  if (code == "42P05" || code == "26000") {
    return fail(StoreError::Kind::refused, kTransactionPooler);
  }
  return fail(StoreError::Kind::rejected, field(result, PG_DIAG_MESSAGE_PRIMARY));
}

void Session::cancel(std::string_view key, const std::stop_token& stop) {
  // PQcancel has no timeout.
  const Statement statement{.name = "pg_cancel_backend",
                            .sql = "SELECT pg_cancel_backend($1::int)",
                            .how = Statement::How::once};
  const std::string process =
      process_.empty() ? std::to_string(PQbackendPID(connection_.get())) : process_;
  Session other(endpoint_, cancelling(stop), env_);
  cancel_with(other, statement, key, {&process, 1}, stop);
}

}  // namespace lockbench::postgres
