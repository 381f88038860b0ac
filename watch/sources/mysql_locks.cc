#include "watch/sources/mysql_locks.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "strategies/mysql/client/session.h"

namespace lockbench::watch {
namespace {

/// An expression for the list of these arrays, which the connection's character set does not
/// change. JSON_ARRAYAGG has had faults in joins.
std::string list_of(std::string_view array) {
  return fmt::format("CAST(CONCAT('[', IFNULL(GROUP_CONCAT({}), ''), ']') AS BINARY)", array);
}

/// A lock's name is one of the two parts of its key at the server; the other is empty.
constexpr std::string_view kInPerformanceSchema = R"(
SELECT CONCAT(IFNULL(m.OBJECT_SCHEMA, ''), IFNULL(m.OBJECT_NAME, '')) AS name,
  t.PROCESSLIST_ID AS id, IF(m.LOCK_STATUS = 'GRANTED', 1, 0) AS granted
FROM performance_schema.metadata_locks m
  JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID
WHERE m.OBJECT_TYPE = 'USER LEVEL LOCK' AND m.LOCK_STATUS IN ('GRANTED', 'PENDING'))";
constexpr std::string_view kByPlugin = R"(
SELECT CONCAT(TABLE_SCHEMA, TABLE_NAME) AS name, THREAD_ID AS id
FROM information_schema.METADATA_LOCK_INFO WHERE LOCK_TYPE = 'User lock')";

std::string asked_by_name(const std::vector<std::string>& patterns) {
  std::string sql = "SELECT name, id FROM (SELECT '' AS name, NULL AS id";
  for (const std::string& name : patterns) {
    if (!is_name(name)) continue;
    sql += mysql::with_parameters(
        " UNION ALL SELECT CONVERT(? USING utf8mb4), IS_USED_LOCK(CONVERT(? USING utf8mb4))",
        {&name, 1});
  }
  return sql + ") AS n WHERE id IS NOT NULL";
}

/// Also the sessions that wait with a holder's name in their statement: as text, or in hexadecimal
/// digits, as lockbench and some drivers send it.
std::string with_waiters(std::string_view holders) {
  return fmt::format(R"(SELECT h.name, h.id, 1 AS granted FROM ({0}) AS h
UNION ALL SELECT h.name, w.ID, 0 FROM ({0}) AS h JOIN information_schema.PROCESSLIST w
  ON w.ID <> h.id AND (INSTR(w.INFO, QUOTE(h.name)) > 0 OR INSTR(w.INFO, HEX(h.name)) > 0)
WHERE w.STATE = 'User lock')",
                     holders);
}

std::optional<SqlLock> read_named_lock(const nlohmann::json& line) {
  constexpr std::size_t kParts = 6;
  if (!line.is_array() || line.size() != kParts || !line[0].is_string()) return std::nullopt;
  const auto session = number(line[1], std::numeric_limits<std::uint32_t>::max());
  const auto holds = number(line[2], 1);
  if (line[0] == "" || (!session && !line[1].is_null()) || !holds) return std::nullopt;
  const bool of_client = session.value_or(0) != 0;
  SqlLock lock{.name = line[0].get<std::string>(),
               .owner = of_client ? fmt::format("connection {}", *session) : "the server itself",
               .granted = *holds == 1,
               .waited = past(line[3]),
               .idle = past(line[4])};
  if (line[5].is_string()) lock.who = line[5].get<std::string>();
  return lock;
}

}  // namespace

std::string named_lock_look(NamedLocks shown, const std::vector<std::string>& patterns) {
  const bool has_programs = shown == NamedLocks::performance_schema;
  std::string locks(kInPerformanceSchema);
  if (shown == NamedLocks::plugin) locks = with_waiters(kByPlugin);
  if (shown == NamedLocks::by_name) locks = with_waiters(asked_by_name(patterns));
  const std::string line = fmt::format(
      "JSON_ARRAY(l.name, l.id, l.granted, IF(l.granted = 1, NULL, p.TIME_MS / 1000), "
      "IF(p.COMMAND = 'Sleep', p.TIME_MS / 1000, NULL), "
      "NULLIF(CONCAT_WS(', ', {}CONCAT(p.USER, '@', p.HOST)), ''))",
      has_programs ? "LEFT(c.ATTR_VALUE, 64), " : "");
  return fmt::format(
      "SELECT {} FROM (SELECT * FROM ({}) AS a LIMIT {}) AS l "
      "LEFT JOIN information_schema.PROCESSLIST p ON p.ID = l.id{}",
      list_of(line), locks, kMostLocks + 1,
      has_programs ? " LEFT JOIN performance_schema.session_connect_attrs c "
                     "ON c.PROCESSLIST_ID = l.id AND c.ATTR_NAME = 'program_name'"
                   : "");
}

tl::expected<SqlLook, std::string> read_named_locks(std::string_view text) {
  return read_locks(text, read_named_lock);
}

std::string mysql_table_look(const std::vector<SqlTable>& tables) {
  // As ShedLock writes UTC_TIMESTAMP(), whatever the time zones of its sessions and the column.
  constexpr std::string_view kLeft = "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.lock_until)",
                             kHeld = "TIMESTAMPDIFF(MICROSECOND, l.locked_at, UTC_TIMESTAMP(6))";
  std::string lists;
  for (const SqlTable& table : tables) {
    const std::string row = fmt::format(
        "JSON_ARRAY(LEFT(CONVERT(l.name USING utf8mb4), 256), LEFT(CONVERT(l.locked_by USING "
        "utf8mb4), 128), {} / 1000000, {} / 1000000)",
        kLeft, table.has_locked_at ? kHeld : "NULL");
    lists += fmt::format(
        "{}(SELECT {} FROM (SELECT name, locked_by, lock_until{} FROM {}.{} WHERE lock_until > "
        "UTC_TIMESTAMP(6) - INTERVAL {} SECOND LIMIT {}) AS l)",
        lists.empty() ? "" : ", ',', ", list_of(row), table.has_locked_at ? ", locked_at" : "",
        quoted(table.schema, "`"), quoted(table.table, "`"), kRemembered, kMostTableRows + 1);
  }
  return fmt::format("SELECT CONCAT('[', {}, ']')", lists);
}

}  // namespace lockbench::watch
