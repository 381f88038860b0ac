#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "strategies/number.h"
#include "strategies/postgres/client/endpoint.h"
#include "strategies/postgres/client/session.h"
#include "watch/sources/keys.h"
#include "watch/sources/postgres_locks.h"
#include "watch/sources/server_source.h"

namespace lockbench::watch {
namespace {

using nlohmann::json;
using postgres::Answer;
using postgres::Session;
using postgres::Statement;

/// Shortest interval between looks: reading pg_locks stops all locking on the server for a moment.
constexpr Duration kShortest = std::chrono::milliseconds(20);
/// Looks take at most a tenth of the time: slow ones are made less often.
constexpr int kPart = 10;
constexpr std::string_view kNotInTime = "its catalogue cannot be read in time";

/// Tables with ShedLock's columns, whether we may read them, and whether they have locked_at.
constexpr std::string_view kFindTables = R"(
SELECT coalesce(json_agg(json_build_array(n.nspname, t.relname,
  has_schema_privilege(n.oid, 'USAGE') AND (has_table_privilege(t.oid, 'SELECT')
    OR has_any_column_privilege(t.oid, 'SELECT')), 'locked_at' = ANY (c.names))), '[]')::text
FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
  JOIN LATERAL (SELECT array_agg(a.attname::text) AS names FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped) AS c ON true
WHERE t.relkind IN ('r', 'p', 'v') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND t.oid IN (SELECT attrelid FROM pg_catalog.pg_attribute WHERE attname = 'lock_until'
    AND NOT attisdropped LIMIT 20) AND c.names @> '{name,lock_until,locked_by}')";

class PostgresWatch : public Watching {
 public:
  PostgresWatch(const postgres::Endpoint& endpoint, const Watching& watching)
      : Watching(watching),
        session_(endpoint, request_.command_timeout, env_),
        // Without patterns, look at all locks and propose them.
        book_({.locks = request_.locks.empty() ? std::vector<std::string>{"*"} : request_.locks,
               .exclude = request_.exclude},
              request_.most_locks) {}

  void begin() {
    const std::string said =
        ask("the session's rights",
            "SELECT json_build_array(current_setting('server_version_num'), "
            "pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') OR (SELECT "
            "rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user), "
            "current_database())::text");
    const json facts = json::parse(said, nullptr, false);
    const bool fits = facts.is_array() && facts.size() == 3 && facts[0].is_string() &&
                      facts[1].is_boolean() && facts[2].is_string();
    const auto version =
        fits ? parse_number<std::uint64_t>(facts[0].get<std::string>()) : std::nullopt;
    if (!version) misread("its version cannot be read");
    version_ = *version;
    sees_sessions_ = facts[1].get<bool>();
    database_ = facts[2].get<std::string>();
    find_tables();
  }

  void run() {
    const std::string look = lock_look(version_);
    reporter().facts(facts());
    while (!stopped()) {
      const TimePoint begun_at = env_.now();
      look_at_locks(look);
      const Duration took = took_;
      look_at_tables();
      env_.wait(nullptr, begun_at + std::max(shortest(), kPart * took), stop_);
    }
  }

 private:
  SourceFacts facts() const {
    SourceFacts facts{
        .store = "postgres",
        .endpoint = session_.display(),
        .way = fmt::format("looks at pg_locks{} every {} or less often",
                           tables_.empty() ? "" : " and lock tables", format_duration(shortest())),
        .accuracy = Accuracy::sampled,
        .waiters = "sessions that wait, in pg_locks",
        .unseen = {
            "holds between two looks: short ones are missed more often than long ones, and two "
            "holds of one session appear as one if their gap is between two looks",
            "locks of rows and tables: pg_locks and pg_blocking_pids() show who waits for them",
            fmt::format("locks of other databases than {}", database_),
            "whether an advisory lock was released or its session ended",
            "behind a transaction pooler: which client has a lock; a lock there belongs to the "
            "pooler's session"}};
    auto& unseen = facts.unseen;
    if (!sees_sessions_) {
      unseen.emplace_back(
          "since when the locks found at the first look are held: the role is no member of "
          "pg_read_all_stats or pg_monitor");
    }
    if (version_ < 140'000) unseen.emplace_back("since when sessions wait: needs PostgreSQL 14");
    for (const PostgresTable& table : tables_) {
      unseen.push_back(
          fmt::format("the time zone of {} if its column lock_until has none: it is read as UTC",
                      table.display()));
    }
    for (const std::string& table : closed_) {
      unseen.push_back(fmt::format("the lock table {}: SELECT is not granted", table));
    }
    return facts;
  }

  Duration shortest() const {
    const double rounds = request_.budget / (tables_.empty() ? 1 : 2);
    return std::max(kShortest, std::chrono::duration_cast<Duration>(
                                   std::chrono::duration<double>(1 / std::max(rounds, 1e-3))));
  }

  [[noreturn]] void misread(std::string_view why) const {
    throw Failure(fmt::format("{}: {}", session_.display(), why));
  }

  /// The one value of a SELECT; nothing if a table was locked or the server took too long.
  std::optional<std::string> try_ask(std::string_view name, const std::string& select) {
    // SET LOCAL, as a transaction pooler would pass session settings on to other clients. A short
    // lock_timeout, so that nobody queues behind us for long. The server times out before the
    // client, which would have to reconnect.
    const Duration longest = request_.command_timeout * 3 / 4;
    const Statement statement{
        .name = name,
        .sql = fmt::format("SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = {}; "
                           "SET LOCAL lock_timeout = 50; {}",
                           std::max<std::int64_t>(ceil_milliseconds(longest), 1), select),
        .how = Statement::How::script,
        .answered = "SELECT"};
    const TimePoint asked_at = env_.now();
    auto answer = session_.call(statement, {}, {}, {.wait_until = {}, .stop = stop_});
    const TimePoint now = env_.now();
    took_ = now - asked_at;
    if (!answer) {
      // A late rejection is the statement timeout, unless logging in took the time (no version
      // yet).
      const bool rejected = answer.error().kind == StoreError::Kind::rejected;
      if (rejected && took_ >= longest && version_ != 0) return std::nullopt;
      throw Failure(answer.error().message);
    }
    budget_.answered(took_, now);
    switch (answer->kind) {
      case Answer::Kind::done:
        return std::move(answer->value);
      case Answer::Kind::lock_not_available:
      case Answer::Kind::deadlock:
      case Answer::Kind::not_serializable:
        return std::nullopt;
      case Answer::Kind::cancelled:
        misread("stopped");
      case Answer::Kind::session_over:
        break;
    }
    misread("the server has ended the session");
  }

  std::string ask(std::string_view name, const std::string& select) {
    budget_.owe(1);
    auto answer = try_ask(name, select);
    if (!answer) misread(kNotInTime);
    return *std::move(answer);
  }

  /// Notes those that we may not read in `closed_`.
  void find_tables() {
    const json lines = json::parse(ask("lock tables", std::string(kFindTables)), nullptr, false);
    if (!lines.is_array()) misread("its tables cannot be read");
    for (const json& line : lines) {
      const bool fits = line.is_array() && line.size() == 4 && line[0].is_string() &&
                        line[1].is_string() && line[2].is_boolean() && line[3].is_boolean();
      if (!fits) continue;
      PostgresTable table{.schema = line[0].get<std::string>(),
                          .table = line[1].get<std::string>(),
                          .has_locked_at = line[3].get<bool>()};
      if (line[2].get<bool>()) {
        tables_.push_back(std::move(table));
      } else {
        closed_.push_back(table.display());
      }
    }
  }

  void look_at_locks(const std::string& select) {
    if (!spend(1)) return;
    const TimePoint asked_at = env_.now();
    const auto said = try_ask("pg_locks", select);
    if (!said) misread(kNotInTime);
    const auto look = read_look(*said);
    if (!look) misread(look.error());
    reporter().restored();
    take(book_.locks(*look, asked_at));
    reporter().missed(look->malformed, "lines of pg_locks that cannot be read");
    if (look->cut) {
      reporter().missed(1, fmt::format("more than {} locks in pg_locks at once", kMostLocks));
    }
  }

  void look_at_tables() {
    // A look at a table without an index reads all of it, so it has its own pace.
    if (tables_.empty() || env_.now() < tables_at_ || !spend(1)) return;
    const TimePoint asked_at = env_.now();
    const auto said = try_ask("lock tables", table_look(tables_));
    const TimePoint answered_at = env_.now();
    tables_at_ = asked_at + kPart * took_;
    if (!said) {
      return reporter().missed(1, "a lock table was locked itself, or took too long to read");
    }
    const auto looks = read_table_look(*said, tables_.size());
    if (!looks) misread(looks.error());
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const PostgresTableLook& look = (*looks)[i];
      take(book_.rows(tables_[i].display(), look, asked_at, answered_at));
      reporter().missed(look.malformed, "rows of lock tables that cannot be read");
      if (look.cut) {
        reporter().missed(1, fmt::format("more than {} locks in a table at once", kMostTableRows));
      }
    }
  }

  void take(std::vector<Sighting> seen) {
    reporter().missed(book_.take_left_out(),
                      fmt::format("more than {} locks at once", request_.most_locks));
    if (!request_.locks.empty()) return reporter().seen(std::move(seen));
    for (const Sighting& sighting : seen) reporter().proposed(generalised(sighting.lock));
  }

  Session session_;
  PostgresBook book_;
  std::uint64_t version_ = 0;
  bool sees_sessions_ = false;
  std::string database_;
  std::vector<PostgresTable> tables_;
  std::vector<std::string> closed_;  ///< lock tables that we may not read
  Duration took_{};                  ///< round trip of the latest statement
  TimePoint tables_at_{};            ///< time of the next look at them
};

}  // namespace

Made make_postgres_source(const std::string& url, const Request& request) {
  return one_server<PostgresWatch>(url, request, postgres::parse_endpoint);
}

}  // namespace lockbench::watch
