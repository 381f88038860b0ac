#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

// Tables that say who holds which lock until when, as ShedLock's does.
namespace lockbench::watch {

/// A lock table, as the user names it or as it was found. Names are as the catalogue has them.
struct PostgresTable {
  std::string schema;  ///< empty: where the server's search path finds it
  std::string table;
  std::string name, until, by;  ///< columns; all empty: to be found by their names
  std::string at;               ///< of the time of locking; empty: it has none

  /// For people, and what its locks' names begin with: "public.shedlock".
  std::string display() const;
  /// For SQL: "\"public\".\"shedlock\"".
  std::string quoted() const;
};

/// Reads "schema.table" or "table(name,lock_until,locked_by)". As in SQL, a name in double quotes
/// is taken as it is and others are folded to lower case. The error says what is wrong.
tl::expected<PostgresTable, std::string> parse_lock_table(std::string_view text);

/// An identifier for SQL, whatever is in it.
std::string quote_identifier(std::string_view name);

/// Asks for the rows of locks that are held or ended a short while ago: one value, a JSON array
/// with an array for each table, for read_table_look.
std::string table_look(const std::vector<PostgresTable>& tables);

/// Rows of one table that a look brings, at most.
inline constexpr std::size_t kMostTableRows = 1000;

}  // namespace lockbench::watch
