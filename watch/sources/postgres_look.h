#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/duration.h"

// What PostgreSQL answers to a look at its locks.
namespace lockbench::watch {

/// One line of pg_locks, with what is known of its session.
struct PostgresLock {
  enum class Kind { advisory, tuple, transaction };

  Kind kind = Kind::advisory;
  /// Who can hold and wait for the same one: "advisory:42", "row:public.orders:0,7" (page and place
  /// of the row), "transaction:731".
  std::string name;
  std::uint64_t process = 0;  ///< of the server, for the session; 0: a prepared transaction
  bool shared = false;
  bool granted = false;
  std::optional<Duration> waited;       ///< for a lock that is not granted, from PostgreSQL 14 on
  std::optional<Duration> idle;         ///< how long its session has run no statement
  std::optional<Duration> transaction;  ///< how long its transaction has lasted
};

struct PostgresLook {
  std::vector<PostgresLock> locks;
  bool cut = false;             ///< there were more
  std::uint64_t malformed = 0;  ///< lines that could not be read
};

/// A row of a lock table.
struct PostgresRow {
  std::string name, owner;
  /// Until it ends; negative: it has ended. Nothing: it never does.
  std::optional<Duration> left;
  std::optional<Duration> held;  ///< where the table says since when
};

struct PostgresTableLook {
  std::vector<PostgresRow> rows;
  bool cut = false;
  std::uint64_t malformed = 0;
};

/// Asks for the locks of this database: one value, for read_look. For a server of this version
/// (140002: 14.2).
std::string lock_look(std::uint64_t version);
inline constexpr std::size_t kMostLocks = 4000;

/// The errors say what was wrong with the answer as a whole; single lines that cannot be read are
/// left out and counted.
tl::expected<PostgresLook, std::string> read_look(std::string_view json);
/// One for each table, in their order.
tl::expected<std::vector<PostgresTableLook>, std::string> read_table_look(std::string_view json,
                                                                          std::size_t tables);

}  // namespace lockbench::watch
