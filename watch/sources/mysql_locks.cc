#include "watch/sources/mysql_locks.h"

#include <fmt/format.h>

#include <boost/algorithm/string/replace.hpp>
#include <limits>
#include <nlohmann/json.hpp>

namespace lockbench::watch {
namespace {

using nlohmann::json;

/// As text in any character set of the connection.
std::string literal(std::string_view text) {
  std::string hex;
  for (const char byte : text) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return fmt::format("CONVERT(x'{}' USING utf8mb4)", hex);
}

std::string in_backticks(const std::string& name) {
  return fmt::format("`{}`", boost::replace_all_copy(name, "`", "``"));
}

/// An expression for the list of these arrays, which the connection's character set does not
/// change. JSON_ARRAYAGG has had faults in joins.
std::string list_of(std::string_view array) {
  return fmt::format("CAST(CONCAT('[', IFNULL(GROUP_CONCAT({}), ''), ']') AS BINARY)", array);
}

/// The name of a lock is the first part of its key at the server, and its second is empty.
constexpr std::string_view kInPerformanceSchema = R"(
SELECT CONCAT(IFNULL(m.OBJECT_SCHEMA, ''), IFNULL(m.OBJECT_NAME, '')) AS name,
  t.PROCESSLIST_ID AS id, IF(m.LOCK_STATUS = 'GRANTED', 1, 0) AS granted
FROM performance_schema.metadata_locks m
  JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID
WHERE m.OBJECT_TYPE = 'USER LEVEL LOCK' AND m.LOCK_STATUS IN ('GRANTED', 'PENDING'))";
constexpr std::string_view kByPlugin = R"(
SELECT CONCAT(TABLE_SCHEMA, TABLE_NAME) AS name, THREAD_ID AS id
FROM information_schema.METADATA_LOCK_INFO WHERE LOCK_TYPE = 'User lock')";

std::string by_name(const std::vector<std::string>& names) {
  std::string sql = "SELECT '' AS name, NULL AS id";
  for (const std::string& name : names) {
    sql += fmt::format(" UNION ALL SELECT {0}, IS_USED_LOCK({0})", literal(name));
  }
  return fmt::format("SELECT name, id FROM ({}) AS n WHERE id IS NOT NULL", sql);
}

/// Holders, and the sessions that wait with a holder's name in their statement: as text, or in
/// hexadecimal digits as lockbench and some drivers send it.
std::string with_waiters(const std::string& holders) {
  return fmt::format(R"(SELECT h.name, h.id, 1 AS granted FROM ({0}) AS h
UNION ALL SELECT h.name, w.ID, 0 FROM ({0}) AS h JOIN information_schema.PROCESSLIST w
  ON w.ID <> h.id AND (INSTR(w.INFO, QUOTE(h.name)) > 0 OR INSTR(w.INFO, HEX(h.name)) > 0)
WHERE w.STATE = 'User lock')",
                     holders);
}

std::optional<SqlLock> read_named_lock(const json& line) {
  constexpr std::size_t kColumns = 6;
  if (!line.is_array() || line.size() != kColumns || !line[0].is_string()) return std::nullopt;
  const auto session = number(line[1], std::numeric_limits<std::uint32_t>::max());
  const auto granted = number(line[2], 1);
  if ((!session && !line[1].is_null()) || !granted) return std::nullopt;
  const bool of_client = session.value_or(0) != 0;
  SqlLock lock{.name = line[0].get<std::string>(),
               .owner = of_client ? fmt::format("connection {}", *session) : "the server itself",
               .granted = *granted == 1,
               .waited = past(line[3]),
               .idle = past(line[4])};
  if (lock.name.empty()) return std::nullopt;
  if (line[5].is_string()) lock.who = line[5].get<std::string>();
  return lock;
}

}  // namespace

std::string named_lock_look(NamedLocks shown, const std::vector<std::string>& names) {
  const bool has_programs = shown == NamedLocks::performance_schema;
  std::string locks(kInPerformanceSchema);
  if (shown == NamedLocks::plugin) locks = with_waiters(std::string(kByPlugin));
  if (shown == NamedLocks::by_name) locks = with_waiters(by_name(names));
  return fmt::format(
      "SELECT {} FROM (SELECT * FROM ({}) AS a LIMIT {}) AS l "
      "LEFT JOIN information_schema.PROCESSLIST p ON p.ID = l.id{}",
      list_of(fmt::format("JSON_ARRAY(l.name, l.id, l.granted, "
                          "IF(l.granted = 1, NULL, p.TIME_MS / 1000), "
                          "IF(p.COMMAND = 'Sleep', p.TIME_MS / 1000, NULL), "
                          "NULLIF(CONCAT_WS(', ', {}CONCAT(p.USER, '@', p.HOST)), ''))",
                          has_programs ? "LEFT(c.ATTR_VALUE, 64), " : "")),
      locks, kMostLocks + 1,
      has_programs ? " LEFT JOIN performance_schema.session_connect_attrs c "
                     "ON c.PROCESSLIST_ID = l.id AND c.ATTR_NAME = 'program_name'"
                   : "");
}

tl::expected<SqlLook, std::string> read_named_locks(std::string_view text) {
  return read_locks(text, read_named_lock);
}

std::vector<std::string> names_among(const std::vector<std::string>& patterns) {
  std::vector<std::string> names;
  for (const std::string& pattern : patterns) {
    if (pattern.find_first_of("*?") == std::string::npos) names.push_back(pattern);
  }
  return names;
}

std::string mysql_tables() {
  return fmt::format(R"(SELECT {} FROM (
SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t, MIN(IF(FIND_IN_SET('select', PRIVILEGES) > 0, 1, 0)) AS r,
  MAX(IF(COLUMN_NAME = 'locked_at', 1, 0)) AS d
FROM information_schema.COLUMNS
WHERE COLUMN_NAME IN ('name', 'lock_until', 'locked_by', 'locked_at')
  AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
GROUP BY TABLE_SCHEMA, TABLE_NAME HAVING SUM(IF(COLUMN_NAME = 'locked_at', 0, 1)) = 3 LIMIT 20) AS c)",
                     list_of("JSON_ARRAY(c.s, c.t, c.r, c.d)"));
}

std::string mysql_table_look(const std::vector<SqlTable>& tables) {
  std::string lists;
  for (const SqlTable& table : tables) {
    const std::string row = fmt::format(
        "JSON_ARRAY(LEFT(CONVERT(l.name USING utf8mb4), 256), "
        "LEFT(CONVERT(l.locked_by USING utf8mb4), 128), "
        "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.lock_until) / 1000000, {})",
        table.has_locked_at ? "TIMESTAMPDIFF(MICROSECOND, l.locked_at, UTC_TIMESTAMP(6)) / 1000000"
                            : "NULL");
    lists += fmt::format(
        "{}(SELECT {} FROM (SELECT name, locked_by, lock_until{} FROM {}.{} WHERE lock_until > "
        "UTC_TIMESTAMP(6) - INTERVAL {} "
        "SECOND LIMIT {}) AS l)",
        lists.empty() ? "" : ", ',', ", list_of(row), table.has_locked_at ? ", locked_at" : "",
        in_backticks(table.schema), in_backticks(table.table), kRemembered, kMostTableRows + 1);
  }
  return fmt::format("SELECT CONCAT('[', {}, ']')", lists);
}

}  // namespace lockbench::watch
