#include "strategies/mysql/client/session.h"

#include <errmsg.h>
#include <fmt/format.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace lockbench::mysql {
namespace {

/// What statements rely on: READ COMMITTED locks no gaps between rows. A number that is drawn in an
/// open transaction is on disk only after its end, so the first one, drawn here, reserves more than
/// a run draws; the server writes sequences to disk together with the next change of a row. Fails
/// if the objects of the run do not exist.
std::string use_objects(const std::string& schema, Duration timeout) {
  const auto wait = std::max<std::int64_t>(ceil_seconds(timeout) - 1, 1);
  return fmt::format(R"(
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET SESSION innodb_lock_wait_timeout = {1}, lock_wait_timeout = 1, time_zone = '+00:00';
USE {0};
SELECT NEXTVAL(fencing);
INSERT IGNORE INTO lease VALUES (CONCAT('session ', CONNECTION_ID()), '', SYSDATE(6));
DELETE FROM lease WHERE name = CONCAT('session ', CONNECTION_ID()))",
                     schema, wait);
}

/// Tables of rows to lock and of leases, and last a sequence for fencing numbers. Only if it does
/// not exist: CREATE SEQUENCE IF NOT EXISTS waits for open transactions that have drawn a number.
std::string make_objects(const std::string& schema) {
  return fmt::format(R"(
CREATE DATABASE IF NOT EXISTS {0};
CREATE TABLE IF NOT EXISTS {0}.lock_row (name VARBINARY({1}) PRIMARY KEY) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS {0}.lease (name VARBINARY({1}) PRIMARY KEY, owner VARBINARY(64) NOT NULL, lock_until DATETIME(6) NOT NULL) ENGINE=InnoDB;
CREATE SEQUENCE IF NOT EXISTS {0}.fencing CACHE 1000000000 ENGINE=InnoDB)",
                     schema, kLongestKey);
}

/// What an error means to a lock, if anything. NOWAIT and a wait in vain have one code.
std::optional<Answer::Kind> meaning_of_code(unsigned code) {
  switch (code) {
    case ER_LOCK_WAIT_TIMEOUT:
      return Answer::Kind::lock_not_available;
    case ER_LOCK_DEADLOCK:
      return Answer::Kind::deadlock;
    case ER_QUERY_INTERRUPTED:
    case ER_STATEMENT_TIMEOUT:
      return Answer::Kind::cancelled;
    case ER_CONNECTION_KILLED:
    case ER_SERVER_SHUTDOWN:
      return Answer::Kind::session_over;
    default:
      return std::nullopt;
  }
}

/// Whether the library says it, and not the server.
bool is_of_library(unsigned code) {
  constexpr unsigned kFirst = 2000, kEnd = 3000, kFirstOfMariadb = 5000, kEndOfMariadb = 6000;
  return (code >= kFirst && code < kEnd) || (code >= kFirstOfMariadb && code < kEndOfMariadb);
}

}  // namespace

StoreResult<void> check_row_key(const sql::Session& session, std::string_view key) {
  if (!key.empty() && key.size() <= kLongestKey) return {};
  return failure_at(session.display(), StoreError::Kind::not_sent,
                    fmt::format("a key must have 1 to {} bytes", kLongestKey));
}

std::string with_parameters(std::string_view text, std::span<const std::string> parameters) {
  std::string whole;
  for (std::size_t next = 0; !parameters.empty(); ++next) {
    const std::size_t at = text.find('?');
    if (at == std::string_view::npos) break;
    whole += text.substr(0, at);
    // In any SQL mode and character set.
    whole += "x'";
    for (const char byte : parameters[std::min(next, parameters.size() - 1)]) {
      whole += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    whole += '\'';
    text.remove_prefix(at + 1);
  }
  return whole.append(text);
}

Session::Session(Endpoint endpoint, const Timeouts& timeouts, Env& env)
    : sql::Session("mysql", endpoint.display(), timeouts, env),
      endpoint_(std::move(endpoint)),
      server_name_(endpoint_.tls && !endpoint_.tls->server_name.empty()
                       ? endpoint_.tls->server_name
                       : endpoint_.hosts.front().host) {}

Session::~Session() { Session::close(); }

void Session::close() noexcept {
  connection_.reset();
  schema_.clear();
  lose_bound();
}

std::string Session::version() const {
  const char* const version = connection_ ? mysql_get_server_info(connection_.get()) : nullptr;
  return version == nullptr ? "" : version;
}

bool Session::is_over() const {
  char byte = 0;
  const ssize_t got = recv(mysql_get_socket(connection_.get()), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  // Nothing may come unasked: a message would pass for the next answer.
  return got >= 0 || errno != EAGAIN;
}

StoreResult<void> Session::use_schema(const std::string& schema, std::string_view key,
                                      const std::stop_token& stop) {
  // The server ends idle sessions: then a new one is as good, as nothing was requested yet.
  if (connection_ && is_over()) close();
  if (connection_ && schema == schema_) return {};
  const Statement use{
      .name = "USE", .sql = use_objects(schema, timeouts_), .how = Statement::How::script};
  const Statement make{
      .name = "CREATE DATABASE", .sql = make_objects(schema), .how = Statement::How::script};
  // Clients that create the objects at the same time may hinder each other.
  constexpr int kAttempts = 3;
  StoreResult<Answer> used = set_up(use, key, {}, stop);
  for (int attempt = 1; !used && attempt < kAttempts; ++attempt) {
    if (used.error().kind != StoreError::Kind::rejected) break;
    const auto made = set_up(make, key, {}, stop);
    if (!made && attempt == kAttempts - 1) return tl::unexpected(made.error());
    used = set_up(use, key, {}, stop);
  }
  return used.map([&](const Answer& /*number*/) { schema_ = schema; });
}

StoreResult<Answer> Session::exchange(const Statement& statement, std::string_view key,
                                      std::span<const std::string> parameters,
                                      const Patience& patience) {
  if (is_over()) return Answer{.kind = Answer::Kind::session_over};
  const std::string text = with_parameters(statement.sql, parameters);
  st_mysql* const library = connection_.get();
  received_ = 0;
  Limits limits = limits_of(statement.waits, patience);
  const Await await = [&](int descriptor, short events) {
    return await_socket(descriptor, events, limits, key);
  };
  Answer answer;
  int error = 0;
  auto done = finish(
      mysql_real_query_start(&error, library, text.data(), text.size()),
      [&](int occurred) { return mysql_real_query_cont(&error, library, occurred); }, await);
  for (int results = 0; done && error == 0; ++results) {
    const bool script = statement.how == Statement::How::script;
    if (results == (script ? kMostResults : 1)) {
      return fail(StoreError::Kind::unanswered, "it answered with too many results");
    }
    answer.tag = statement.name;
    done = read_result(answer, await);
    if (done && mysql_errno(library) != 0) break;
    if (!done) break;
    if (!mysql_more_results(library)) return answer;
    done = finish(
        mysql_next_result_start(&error, library),
        [&](int occurred) { return mysql_next_result_cont(&error, library, occurred); }, await);
  }
  if (!done) return tl::unexpected(std::move(done.error()));
  return failed(statement, limits);
}

StoreResult<void> Session::read_result(Answer& answer, const Await& await) {
  st_mysql* const library = connection_.get();
  MYSQL_RES* stored = nullptr;
  auto done = finish(
      mysql_store_result_start(&stored, library),
      [&](int occurred) { return mysql_store_result_cont(&stored, library, occurred); }, await);
  const std::unique_ptr<MYSQL_RES, void (*)(MYSQL_RES*)> result(stored, mysql_free_result);
  if (!done) return done;
  answer.value.clear();
  if (!result) {
    const my_ulonglong changed = mysql_affected_rows(library);
    answer.rows = changed == ~my_ulonglong{0} ? 0 : changed;
    return {};
  }
  answer.tag = "SELECT";
  answer.rows = mysql_num_rows(stored);
  if (answer.rows == 0 || mysql_num_fields(stored) != 1) return {};
  char* const* const row = mysql_fetch_row(stored);
  const unsigned long* const lengths = mysql_fetch_lengths(stored);
  if (row != nullptr && row[0] != nullptr && lengths != nullptr) {
    answer.value.assign(row[0], lengths[0]);
  }
  return {};
}

StoreResult<Answer> Session::failed(const Statement& statement, const Limits& limits) {
  const unsigned code = mysql_errno(connection_.get());
  const std::string said = mysql_error(connection_.get());
  if (code == 0 || is_of_library(code)) {
    return fail(StoreError::Kind::unanswered, said.empty() ? "the connection was closed" : said);
  }
  if (const auto meaning = meaning_of(meaning_of_code(code), statement.waits, limits)) {
    return Answer{.kind = *meaning};
  }
  return fail(StoreError::Kind::rejected, said);
}

void Session::cancel(std::string_view key, const std::stop_token& stop) {
  // Takes no rights for one's own threads.
  const Statement statement{.name = "KILL QUERY",
                            .sql = fmt::format("KILL QUERY {}", mysql_thread_id(connection_.get())),
                            .how = Statement::How::once};
  Session other(endpoint_, cancelling(stop), env_);
  cancel_with(other, statement, key, {}, stop);
}

}  // namespace lockbench::mysql
