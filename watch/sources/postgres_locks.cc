#include "watch/sources/postgres_locks.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace lockbench::watch {
namespace {

using nlohmann::json;

/// The columns of a line, in their order in lock_look.
enum Column : std::size_t {
  class_id,
  object_id,
  object_sub_id,
  process,
  mode,
  granted,
  waited,
  idle,
  who,
  kColumns
};

std::optional<std::string> advisory_name(const json& line) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const auto high = number(line[class_id], kMost), low = number(line[object_id], kMost);
  const auto keys = number(line[object_sub_id], 2);
  if (!high || !low || !keys || *keys == 0) return std::nullopt;
  if (*keys == 1) return fmt::format("advisory:{}", static_cast<std::int64_t>(*high << 32 | *low));
  return fmt::format("advisory:{},{}", static_cast<std::int32_t>(*high),
                     static_cast<std::int32_t>(*low));
}

std::optional<SqlLock> read_lock(const json& line) {
  if (!line.is_array() || line.size() != kColumns || !line[mode].is_string() ||
      !line[granted].is_boolean()) {
    return std::nullopt;
  }
  auto name = advisory_name(line);
  const auto session = number(line[process], std::numeric_limits<std::uint32_t>::max());
  if (!name || (!session && !line[process].is_null())) return std::nullopt;
  SqlLock lock{.name = *std::move(name),
               .owner = session ? fmt::format("process {}", *session) : "prepared transaction",
               .shared = line[mode].get<std::string>() == "ShareLock",
               .granted = line[granted].get<bool>(),
               .waited = past(line[waited]),
               .idle = past(line[idle])};
  if (line[who].is_string()) lock.who = line[who].get<std::string>();
  return lock;
}

}  // namespace

std::string lock_look(std::uint64_t version) {
  constexpr std::uint64_t kTellsWaits = 140'000;
  // Our own session takes no such locks, but behind a transaction pooler it may have one of another
  // client, for ever if that forgot it.
  return fmt::format(
      R"(SELECT coalesce(json_agg(json_build_array(l.c, l.o, l.objsubid, l.pid, l.mode, l.granted,
  extract(epoch FROM clock_timestamp() - l.began)::float8,
  CASE WHEN a.state LIKE 'idle%' THEN extract(epoch FROM clock_timestamp() - a.state_change)::float8 END,
  nullif(concat_ws(', ', nullif(left(a.application_name, 64), ''), host(a.client_addr)), ''))), '[]')::text
FROM (SELECT classid::bigint AS c, objid::bigint AS o, objsubid, pid, mode, granted, {} AS began
  FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND database =
    (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) LIMIT {}) AS l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid)",
      version >= kTellsWaits ? "waitstart" : "NULL::timestamptz", kMostLocks + 1);
}

tl::expected<SqlLook, std::string> read_look(std::string_view text) {
  return read_locks(text, read_lock);
}

std::string table_look(const std::vector<SqlTable>& tables) {
  // extract() reads a timestamp without time zone as UTC.
  std::string sql;
  for (const SqlTable& table : tables) {
    sql += fmt::format(
        "{0}coalesce((SELECT json_agg(json_build_array(left(l.name::text, 256), "
        "left(l.locked_by::text, 128), (extract(epoch FROM l.lock_until) - c.t)::float8, {1})) "
        "FROM (SELECT * FROM {2}.{3} WHERE extract(epoch FROM lock_until) > "
        "extract(epoch FROM clock_timestamp()) - {4} LIMIT {5}) AS l, "
        "(SELECT extract(epoch FROM clock_timestamp()) AS t) AS c), '[]')",
        sql.empty() ? "SELECT json_build_array(" : ", ",
        table.has_locked_at ? "(c.t - extract(epoch FROM l.locked_at))::float8" : "NULL",
        quoted(table.schema, "\""), quoted(table.table, "\""), kRemembered, kMostTableRows + 1);
  }
  return sql + ")::text";
}

}  // namespace lockbench::watch
