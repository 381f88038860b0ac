#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <new>

#include "strategies/postgres/client/session.h"

// How a session talks to its server: libpq's non-blocking calls, with deadlines and stops.
namespace lockbench::postgres {
namespace {

/// How often a wait looks whether it is to stop.
constexpr Duration kSlice = std::chrono::milliseconds(20);
/// After a stop: what an answer that is on its way may still take, what a cancellation may, and
/// what it may take to show. All together less than 100 ms.
constexpr Duration kLastMoment = std::chrono::milliseconds(10);
constexpr Duration kCancelWithin = std::chrono::milliseconds(30);
constexpr Duration kGrace = std::chrono::milliseconds(30);

void ignore_notice(void* /*nothing*/, const char* /*message*/) {}

/// The first line, without what libpq puts in front.
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

}  // namespace

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
  ppoll(&ready, 1, &time, nullptr);  // whatever it says, libpq looks for itself
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
    // Polled before the socket is ready, libpq would block.
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
  std::stop_token stop = patience.stop;
  TimePoint interrupt_at = TimePoint::max();
  ResultPtr last;
  // Bounded by give_up_at, which a stop brings near.
  while (true) {
    const int unsent = PQflush(connection_.get());
    if (unsent < 0) break;
    if (unsent == 0 && PQisBusy(connection_.get()) == 0) {
      ResultPtr next(PQgetResult(connection_.get()));
      if (!next) break;
      // The first error says most.
      if (!last || PQresultStatus(last.get()) != PGRES_FATAL_ERROR) last = std::move(next);
      continue;
    }
    if (stop.stop_requested()) {
      interrupt_at = env_.now() + kLastMoment;
      stop = {};
    }
    if (env_.now() >= interrupt_at) {
      if (waits) cancel(key);
      give_up_at = std::min(give_up_at, env_.now() + kGrace);
      interrupt_at = TimePoint::max();
    }
    const auto events = static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN);
    if (!wait_for_socket(events, std::min(give_up_at, interrupt_at), stop) &&
        env_.now() >= give_up_at) {
      return fail(StoreError::Kind::unanswered,
                  patience.stop.stop_requested() ? "stopped while waiting for the answer"
                                                 : "no answer within " + format_duration(timeout_));
    }
    if (PQconsumeInput(connection_.get()) == 0) break;
  }
  // What was read before the end may still say why it ended.
  while (!last) {
    last.reset(PQgetResult(connection_.get()));
    if (!last) break;
  }
  if (last) return last;
  return broken(StoreError::Kind::unanswered);
}

StoreResult<Answer> Session::understood(const pg_result& result, const std::stop_token& stop) {
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
  if (code == "55P03") {
    answer.kind = Answer::Kind::lock_not_available;
  } else if (code == "57014" && stop.stop_requested()) {
    answer.kind = Answer::Kind::cancelled;
  } else if (code.starts_with("57P")) {  // ended by an administrator, or with the server
    answer.kind = Answer::Kind::session_over;
  } else if (PQstatus(connection_.get()) == CONNECTION_BAD) {
    return broken(StoreError::Kind::unanswered);
  } else {
    return fail(StoreError::Kind::rejected, field(result, PG_DIAG_MESSAGE_PRIMARY));
  }
  return answer;
}

void Session::cancel(std::string_view key) {
  // libpq's own PQcancel waits for the server without a bound.
  const Statement statement{.name = "pg_cancel_backend",
                            .sql = "SELECT pg_cancel_backend($1::int)",
                            .how = Statement::How::once};
  const std::string process = std::to_string(PQbackendPID(connection_.get()));
  Session other(endpoint_, kCancelWithin, env_);
  // If it fails, the connection is closed, which ends the wait too, though not at once.
  (void)other.call(statement, key, {&process, 1});
}

}  // namespace lockbench::postgres
