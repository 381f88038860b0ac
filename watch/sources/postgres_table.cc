#include "watch/sources/postgres_table.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace lockbench::watch {
namespace {

/// PostgreSQL cuts longer names.
constexpr std::size_t kLongestIdentifier = 63;
constexpr std::string_view kBreaks = "\".(), \t\r\n";

/// Takes one identifier from the beginning of the text; nothing if there is none.
std::optional<std::string> take_identifier(std::string_view& text) {
  std::string name;
  if (text.starts_with('"')) {
    text.remove_prefix(1);
    while (!text.empty()) {
      const char next = text.front();
      text.remove_prefix(1);
      if (next == '"') {
        if (!text.starts_with('"')) break;
        text.remove_prefix(1);
      } else if (text.empty()) {
        return std::nullopt;  // the closing quote is missing
      }
      name += next;
    }
  } else {
    while (!text.empty() && kBreaks.find(text.front()) == std::string_view::npos) {
      const char next = text.front();
      name += next >= 'A' && next <= 'Z' ? static_cast<char>(next - 'A' + 'a') : next;
      text.remove_prefix(1);
    }
  }
  const bool fits =
      !name.empty() && name.size() <= kLongestIdentifier && name.find('\0') == std::string::npos;
  return fits ? std::optional(std::move(name)) : std::nullopt;
}

bool take(std::string_view& text, char wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

bool take_columns(std::string_view& text, PostgresTable& table) {
  const std::array<std::string*, 3> columns{&table.name, &table.until, &table.by};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0 && !take(text, ',')) return false;
    while (take(text, ' ')) {
    }
    auto column = take_identifier(text);
    if (!column) return false;
    *columns[i] = *std::move(column);
    while (take(text, ' ')) {
    }
  }
  return take(text, ')');
}

std::optional<PostgresTable> read(std::string_view text) {
  PostgresTable table;
  auto first = take_identifier(text);
  if (!first) return std::nullopt;
  table.table = *std::move(first);
  if (take(text, '.')) {
    auto second = take_identifier(text);
    if (!second) return std::nullopt;
    table.schema = std::exchange(table.table, *std::move(second));
  }
  if (take(text, '(') && !take_columns(text, table)) return std::nullopt;
  if (!text.empty()) return std::nullopt;
  return table;
}

}  // namespace

std::string PostgresTable::display() const {
  return schema.empty() ? table : fmt::format("{}.{}", schema, table);
}

std::string PostgresTable::quoted() const {
  const std::string own = quote_identifier(table);
  return schema.empty() ? own : fmt::format("{}.{}", quote_identifier(schema), own);
}

tl::expected<PostgresTable, std::string> parse_lock_table(std::string_view text) {
  auto table = read(text);
  if (table) return *std::move(table);
  return tl::unexpected(fmt::format(
      "\"{}\" is no lock table; allowed: schema.table or table(name,lock_until,locked_by)", text));
}

std::string quote_identifier(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string table_look(const std::vector<PostgresTable>& tables) {
  // What ended a few seconds ago shows whether it was released: then its end was moved to an
  // earlier time. A timestamp without time zone is read as UTC: extract() does so.
  constexpr int kRemembered = 5;
  std::string sql;
  for (const PostgresTable& table : tables) {
    sql += fmt::format(
        "{0}coalesce((SELECT json_agg(json_build_array(left(l.{1}::text, 256), "
        "left(l.{2}::text, 128), (extract(epoch FROM l.{3}) - c.t)::float8, {4})) FROM "
        "(SELECT * FROM {5} WHERE extract(epoch FROM {3}) > "
        "extract(epoch FROM clock_timestamp()) - {6} LIMIT {7}) AS l, "
        "(SELECT extract(epoch FROM clock_timestamp()) AS t) AS c), '[]')",
        sql.empty() ? "SELECT json_build_array(" : ", ", quote_identifier(table.name),
        quote_identifier(table.by), quote_identifier(table.until),
        table.at.empty()
            ? "NULL"
            : fmt::format("(c.t - extract(epoch FROM l.{}))::float8", quote_identifier(table.at)),
        table.quoted(), kRemembered, kMostTableRows);
  }
  return sql + ")::text";
}

}  // namespace lockbench::watch
