#include "strategies/postgres/client/session.h"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace lockbench::postgres {
namespace {

/// How often a wait checks for a stop.
constexpr Duration kSlice = std::chrono::milliseconds(20);
/// After a stop: how long to wait for an answer under way, for the cancellation, and for its
/// effect. Together less than 100 ms. If only the wait is over, the last two take the command
/// timeout at most: a run's end cancels the waits of all clients at once, and 48 connections in
/// 30 ms are too many for two cores.
constexpr Duration kLastMoment = std::chrono::milliseconds(10);
constexpr Duration kCancelWithin = std::chrono::milliseconds(30);
constexpr Duration kGrace = std::chrono::milliseconds(30);
/// lock_timeout ends a wait in time, unless the statement waits twice, as for a row: for the others
/// that want it and then for its holder. After this time the statement is cancelled.
constexpr Duration kOverdue = std::chrono::milliseconds(250);

void ignore_notice(void* /*nothing*/, const char* /*message*/) {}

/// The first line of libpq's message.
std::string first_line(const char* message) {
  std::string_view line = message == nullptr ? "" : message;
  line = line.substr(0, line.find('\n'));
  return line.empty() ? "the connection was closed" : std::string(line);
}

std::string_view field(const PGresult& result, int name) {
  const char* const text = PQresultErrorField(&result, name);
  return text == nullptr ? "" : text;
}

TimePoint later(TimePoint time, Duration by) {
  return time > TimePoint::max() - by ? TimePoint::max() : time + by;
}

/// Creates what the locks of a run need, unless it exists: a sequence for fencing numbers, a table
/// of rows to lock, and a table of leases. Also sets what the statements rely on, whatever the
/// user's defaults are. Answers with the server process.
Statement make_schema(const std::string& schema, Duration timeout) {
  // The lock prevents that two clients create it at once and one of them fails. Its pair of numbers
  // ("lock", "bnch") cannot collide with the single numbers of keys.
  return {.name = "CREATE SCHEMA",
          .sql = fmt::format(R"(
SET default_transaction_isolation = 'read committed';
SET lock_timeout = {1};
SELECT pg_advisory_xact_lock(1819239275, 1651401576);
CREATE SCHEMA IF NOT EXISTS {0};
SET search_path = {0};
CREATE SEQUENCE IF NOT EXISTS {0}.fencing CACHE 1;
CREATE TABLE IF NOT EXISTS {0}.lock_row (key text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS {0}.lease (key text PRIMARY KEY, owner text, lock_until timestamptz NOT NULL);
SELECT pg_backend_pid();
)",
                             schema, ceil_milliseconds(timeout)),
          .how = Statement::How::script};
}

}  // namespace

void Session::Finish::operator()(pg_conn* connection) const noexcept { PQfinish(connection); }
void Session::Clear::operator()(pg_result* result) const noexcept { PQclear(result); }

Session::Session(Endpoint endpoint, Duration command_timeout, Env& env)
    : endpoint_(std::move(endpoint)), timeout_(command_timeout), env_(env) {}

Session::~Session() { close(); }

void Session::close() noexcept {
  connection_.reset();
  prepared_.clear();
  process_.clear();
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
  const CommandInfo info{.store = "postgres",
                         .endpoint = endpoint_.display,
                         .name = statement.name,
                         .key = key,
                         .blocks = statement.waits};
  StoreResult<Answer> answer = fail(StoreError::Kind::not_sent, "the connection was cut");
  if (env_.before_command(info) == CommandFate::drop) {
    close();
  } else if (auto connected = connect(patience.stop); !connected) {
    answer = tl::unexpected(std::move(connected.error()));
  } else {
    Patience own = patience;
    if (statement.waits) own.waiting_stop = env_.waiting_stop(patience.stop);
    answer = exchange(statement, key, parameters, own);
  }
  const bool answered = answer || answer.error().kind == StoreError::Kind::rejected;
  const bool in_vain = statement.waits && answered && !(answer && answer->done());
  const CommandFate fate = env_.after_command(info, in_vain    ? CommandEnd::in_vain
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
  return answer_in(**result, statement.waits, patience);
}

StoreResult<Answer> Session::prepare(const std::string& sql, const Patience& patience) {
  if (prepared_.contains(sql)) return Answer{};
  const std::string name = fmt::format("lockbench_{}", prepared_.size());
  // Before this is done, the statement itself is not sent.
  if (PQsendPrepare(connection_.get(), name.c_str(), sql.c_str(), 0, nullptr) != 1) {
    return broken(StoreError::Kind::not_sent);
  }
  StoreResult<Answer> answer = Answer{};
  if (const auto result = collect(false, {}, patience); !result) {
    answer = tl::unexpected(result.error());
  } else {
    answer = answer_in(**result, false, patience);
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
  process_ = answer->value;
  // A pooler makes up the process that it announces for a connection.
  const bool pooled = process_ != std::to_string(PQbackendPID(connection_.get()));
  if (pooled) {
    if (auto own = check_pooler(key, stop); !own) return own;
  }
  schema_ = schema;
  return {};
}

StoreResult<void> Session::check_pooler(std::string_view key, const std::stop_token& stop) {
  // Two connections ask in turn which process serves them. A pooler of sessions gives each its own,
  // for good. A pooler of transactions gives both the one that was used last, or changes them.
  constexpr int kRounds = 3;
  // A pooler of sessions may have none left for the second connection.
  constexpr Duration kPatience = std::chrono::milliseconds(500);
  static const Statement ask{
      .name = "pg_backend_pid", .sql = "SELECT pg_backend_pid()", .how = Statement::How::once};
  Session other(endpoint_, std::min(timeout_, kPatience), env_);
  std::string others;
  for (int round = 0; round < kRounds; ++round) {
    const auto theirs = other.call(ask, key, {}, {.wait_until = {}, .stop = stop});
    if (!theirs) return {};
    const auto ours = call(ask, key, {}, {.wait_until = {}, .stop = stop});
    if (!ours) return tl::unexpected(ours.error());
    const bool changed = ours->value != process_ || (!others.empty() && theirs->value != others);
    if (changed || ours->value == theirs->value) {
      return fail(StoreError::Kind::refused,
                  "a transaction pooler gives one connection's statements to different server "
                  "processes: connect directly, or use session pooling");
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
                                   .sql = "SELECT set_config('lock_timeout', $1, false)"};
  const std::string value = std::to_string(milliseconds);
  const auto answer = call(statement, key, {&value, 1}, {.wait_until = {}, .stop = stop});
  if (!answer) return tl::unexpected(answer.error());
  if (!answer->done()) return fail(StoreError::Kind::rejected, "lock_timeout could not be set");
  lock_timeout_ = milliseconds;
  return {};
}

tl::unexpected<StoreError> Session::broken(StoreError::Kind kind) const {
  return fail(kind, first_line(PQerrorMessage(connection_.get())));
}

bool Session::wait_for_socket(short events, TimePoint give_up_at, const std::stop_token& stop) {
  const TimePoint now = env_.now();
  if (now >= give_up_at) return false;
  Duration limit = std::min<Duration>(give_up_at - now, std::chrono::hours(1));
  if (stop.stop_possible()) limit = std::min(limit, kSlice);
  pollfd ready{.fd = PQsocket(connection_.get()), .events = events, .revents = 0};
  const timespec time{.tv_sec = std::chrono::floor<std::chrono::seconds>(limit).count(),
                      .tv_nsec = (limit % std::chrono::seconds(1)).count()};
  ppoll(&ready, 1, &time, nullptr);  // libpq checks the socket itself
  return true;
}

StoreResult<void> Session::connect(const std::stop_token& stop) {
  if (connection_) return {};
  const auto failed = [&](std::string_view why) -> StoreResult<void> {
    auto error = fail(StoreError::Kind::not_sent, why);
    connection_.reset();
    return error;
  };
  const TimePoint give_up_at = env_.now() + timeout_;
  const std::array<const char*, 3> names{"dbname", "fallback_application_name", nullptr};
  const std::array<const char*, 3> values{endpoint_.dsn.c_str(), "lockbench", nullptr};
  connection_.reset(PQconnectStartParams(names.data(), values.data(), 1));
  if (!connection_) throw std::bad_alloc();
  PQsetNoticeProcessor(connection_.get(), ignore_notice, nullptr);
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  while (PQstatus(connection_.get()) != CONNECTION_BAD && status != PGRES_POLLING_OK &&
         status != PGRES_POLLING_FAILED) {
    if (stop.stop_requested()) return failed("stopped while connecting");
    const short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    pollfd ready{.fd = PQsocket(connection_.get()), .events = events, .revents = 0};
    if (!wait_for_socket(events, give_up_at, stop)) {
      return failed("no connection within " + format_duration(timeout_));
    }
    // PQconnectPoll blocks if the socket is not ready.
    if (poll(&ready, 1, 0) > 0) status = PQconnectPoll(connection_.get());
  }
  if (PQstatus(connection_.get()) != CONNECTION_OK) {
    return failed(first_line(PQerrorMessage(connection_.get())));
  }
  PQsetnonblocking(connection_.get(), 1);
  return {};
}

bool Session::send(const Statement& statement, std::span<const std::string> parameters) {
  std::vector<const char*> values;
  values.reserve(parameters.size());
  for (const std::string& parameter : parameters) values.push_back(parameter.c_str());
  const int count = static_cast<int>(values.size());
  pg_conn* const to = connection_.get();
  switch (statement.how) {
    case Statement::How::prepared:
      return PQsendQueryPrepared(to, prepared_.at(statement.sql).c_str(), count, values.data(),
                                 nullptr, nullptr, 0) == 1;
    case Statement::How::once:
      return PQsendQueryParams(to, statement.sql.c_str(), count, nullptr, values.data(), nullptr,
                               nullptr, 0) == 1;
    case Statement::How::script:
      return PQsendQuery(to, statement.sql.c_str()) == 1;
  }
  return false;
}

StoreResult<Session::ResultPtr> Session::collect(bool waits, std::string_view key,
                                                 const Patience& patience) {
  TimePoint give_up_at = env_.now();
  if (waits) give_up_at = std::max(give_up_at, patience.wait_until);
  give_up_at = later(give_up_at, timeout_);
  bool wait_over = !waits, cancelled = !waits, hurried = false;
  const TimePoint overdue_at = waits ? later(patience.wait_until, kOverdue) : TimePoint::max();
  TimePoint interrupt_at = overdue_at;
  ResultPtr last;
  // Bounded by give_up_at, which a stop moves to the near future.
  while (true) {
    const int unsent = PQflush(connection_.get());
    if (unsent < 0) break;
    if (unsent == 0 && PQisBusy(connection_.get()) == 0) {
      ResultPtr next(PQgetResult(connection_.get()));
      if (!next) break;
      // Keeps the first error.
      if (!last || PQresultStatus(last.get()) != PGRES_FATAL_ERROR) last = std::move(next);
      continue;
    }
    if (!wait_over && patience.waiting_stop.stop_requested()) {
      wait_over = true;
      interrupt_at = std::min(interrupt_at, env_.now() + kLastMoment);
    }
    if (!hurried && patience.stop.stop_requested()) {
      hurried = true;
      interrupt_at = std::min(interrupt_at, env_.now() + kLastMoment);
    }
    if (env_.now() >= interrupt_at) {
      if (!std::exchange(cancelled, true)) cancel(key, patience.stop);
      give_up_at = std::min(give_up_at, env_.now() + (hurried ? kGrace : timeout_));
      interrupt_at = TimePoint::max();
    }
    const auto events = static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN);
    if (!wait_for_socket(events, std::min(give_up_at, interrupt_at), patience.stop) &&
        env_.now() >= give_up_at) {
      return fail(StoreError::Kind::unanswered,
                  patience.stop.stop_requested() ? "stopped while waiting for the answer"
                                                 : "no answer within " + format_duration(timeout_));
    }
    if (PQconsumeInput(connection_.get()) == 0) break;
  }
  // What was read before the connection ended may say why.
  while (!last) {
    last.reset(PQgetResult(connection_.get()));
    if (!last) break;
  }
  if (last) return last;
  return broken(StoreError::Kind::unanswered);
}

StoreResult<Answer> Session::answer_in(const pg_result& result, bool waits,
                                       const Patience& patience) {
  Answer answer;
  const ExecStatusType status = PQresultStatus(&result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
    auto& readable = const_cast<pg_result&>(result);  // NOLINT: libpq's signature, which only reads
    answer.tag = PQcmdStatus(&readable);
    const std::string_view changed(PQcmdTuples(&readable));
    answer.rows = changed.empty() ? 0 : std::stoul(std::string(changed));
    if (PQntuples(&result) > 0 && PQnfields(&result) > 0) answer.value = PQgetvalue(&result, 0, 0);
    return answer;
  }
  const std::string_view code = field(result, PG_DIAG_SQLSTATE);
  const bool was_cancelled = code == "57014";
  if (was_cancelled && (patience.waiting_stop.stop_requested() || patience.stop.stop_requested())) {
    answer.kind = Answer::Kind::cancelled;
  } else if (code == "55P03" || (was_cancelled && waits && env_.now() >= patience.wait_until)) {
    answer.kind = Answer::Kind::lock_not_available;
  } else if (code.starts_with("57P")) {  // ended by an administrator or a shutdown
    answer.kind = Answer::Kind::session_over;
  } else if (PQstatus(connection_.get()) == CONNECTION_BAD) {
    return broken(StoreError::Kind::unanswered);
  } else {
    return fail(StoreError::Kind::rejected, field(result, PG_DIAG_MESSAGE_PRIMARY));
  }
  return answer;
}

void Session::cancel(std::string_view key, const std::stop_token& stop) {
  // PQcancel has no timeout.
  const Statement statement{.name = "pg_cancel_backend",
                            .sql = "SELECT pg_cancel_backend($1::int)",
                            .how = Statement::How::once};
  const std::string process =
      process_.empty() ? std::to_string(PQbackendPID(connection_.get())) : process_;
  const bool hurried = stop.stop_requested();
  Session other(endpoint_, hurried ? kCancelWithin : timeout_, env_);
  const Patience patience{.wait_until = {}, .stop = hurried ? std::stop_token() : stop};
  // If this fails, the connection is closed, which ends the wait too, but later.
  (void)other.call(statement, key, {&process, 1}, patience);
}

}  // namespace lockbench::postgres
