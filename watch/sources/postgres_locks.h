#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "watch/sources/sql_locks.h"

// Queries for PostgreSQL's locks and lock tables, and how to read the results.
namespace lockbench::watch {

/// A query for the rows of locks that are held or ended a few seconds ago. Its one value is for
/// read_table_look.
std::string table_look(const std::vector<SqlTable>& tables);

/// A query for the advisory locks of the current database; its one value is for read_look.
/// `version` is the server's (140002: 14.2).
std::string lock_look(std::uint64_t version);

/// Locks are named by the arguments of pg_advisory_lock: "advisory:42", "advisory:1,2". Errors
/// concern the answer as a whole; single unreadable lines are left out and counted.
tl::expected<SqlLook, std::string> read_look(std::string_view json);

}  // namespace lockbench::watch
