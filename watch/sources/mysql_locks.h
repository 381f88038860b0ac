#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "watch/sources/sql_locks.h"

// Queries for MariaDB's named locks (GET_LOCK) and lock tables, and how to read the results.
namespace lockbench::watch {

/// What shows the named locks.
enum class NamedLocks {
  performance_schema,  ///< metadata_locks: holders and waiters
  plugin,              ///< METADATA_LOCK_INFO: holders
  by_name,             ///< IS_USED_LOCK: the holder of a lock whose name is known
};

/// Whether the pattern of a request is the name of one lock, which GET_LOCK limits to 64
/// characters.
inline bool is_name(std::string_view pattern) {
  return pattern.size() <= 64 && pattern.find_first_of("*?") == std::string_view::npos;
}

/// A query for the named locks of a server; its one value is for read_named_locks. `patterns`: by
/// name, it asks for the names among them. Where only holders are shown, a session waits for those
/// of these locks whose name is in its statement.
std::string named_lock_look(NamedLocks shown, const std::vector<std::string>& patterns);
/// Errors concern the answer as a whole; single unreadable lines are left out and counted.
tl::expected<SqlLook, std::string> read_named_locks(std::string_view text);

/// A query for the rows of locks that are held or ended a few seconds ago. Its one value is for
/// read_table_look.
std::string mysql_table_look(const std::vector<SqlTable>& tables);

}  // namespace lockbench::watch
