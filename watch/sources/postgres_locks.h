#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "strategies/duration.h"
#include "watch/sources/lock_state.h"

// Queries for PostgreSQL's locks and lock tables, and how to read the results.
namespace lockbench::watch {

/// An advisory lock in pg_locks, with facts about its session.
struct PostgresLock {
  std::string name;           ///< "advisory:42", "advisory:1,2": the arguments of pg_advisory_lock
  std::uint64_t process = 0;  ///< the session's server process; 0: a prepared transaction
  bool shared = false;
  bool granted = false;
  std::optional<Duration> waited;  ///< if not granted; from PostgreSQL 14 on
  std::optional<Duration> idle;    ///< how long its session has been idle
  std::string who{};               ///< application and address, as far as we may see them
};

/// A table with ShedLock's columns: name, lock_until, locked_by.
struct PostgresTable {
  std::string schema, table;   ///< as in the catalogue
  bool has_locked_at = false;  ///< it has the column locked_at, too

  /// "public.shedlock"; also the prefix of its locks' names.
  std::string display() const { return schema + "." + table; }
};

/// A query for the rows of locks that are held or ended a few seconds ago. Its one value is for
/// read_table_look.
std::string table_look(const std::vector<PostgresTable>& tables);
inline constexpr std::size_t kMostTableRows = 1000;  ///< of each table

/// A row of a lock table.
struct PostgresRow {
  std::string name, owner;
  /// Time until it ends; negative: it has ended. Nothing: it never ends.
  std::optional<Duration> left;
  std::optional<Duration> held;  ///< if the table has the time of locking
};

/// The result of one look.
template <class Line>
struct PostgresLines {
  std::vector<Line> lines;
  bool cut = false;             ///< there were more
  std::uint64_t malformed = 0;  ///< number of lines that could not be read
};
using PostgresLook = PostgresLines<PostgresLock>;
using PostgresTableLook = PostgresLines<PostgresRow>;

/// A query for the advisory locks of the current database; its one value is for read_look.
/// `version` is the server's (140002: 14.2).
std::string lock_look(std::uint64_t version);
inline constexpr std::size_t kMostLocks = 4000;

/// Errors concern the answer as a whole; single unreadable lines are left out and counted.
tl::expected<PostgresLook, std::string> read_look(std::string_view json);
/// One result per table, in the same order.
tl::expected<std::vector<PostgresTableLook>, std::string> read_table_look(std::string_view json,
                                                                          std::size_t tables);

/// Turns looks at a PostgreSQL server into sightings. For one thread.
class PostgresBook {
 public:
  /// Follows the locks that the request wants, at most `most` at a time.
  PostgresBook(Request request, std::uint64_t most) : request_(std::move(request)), most_(most) {}

  /// Sightings of the locks of one look, and of those that have been freed since the look before.
  /// If a look was cut, a lock counts as freed once no look has shown it for a while. `at`: not
  /// after the look.
  std::vector<Sighting> locks(const PostgresLook& look, TimePoint at);
  /// Sightings of the rows of one table. `table`: prefix of its locks' names, without the colon.
  /// The look took place between `asked_at` and `answered_at`.
  std::vector<Sighting> rows(const std::string& table, const PostgresTableLook& look,
                             TimePoint asked_at, TimePoint answered_at);

  /// Locks not followed since the last call because there were too many.
  std::uint64_t take_left_out() { return std::exchange(left_out_, 0); }

 private:
  using Known = std::map<std::string, Sighting>;

  /// Replaces the latest sightings: keeps each holder's `since` and adds locks that have been
  /// freed.
  std::vector<Sighting> replace(Known& known, Known now, bool first, bool cut, TimePoint at);

  const Request request_;
  const std::uint64_t most_;
  std::uint64_t left_out_ = 0;
  bool looked_ = false;
  Known locks_;
  struct Row {
    SteadyTime begun, ends;
  };
  struct Table {
    bool looked = false;
    Known held;
    std::map<std::string, Row> rows;  ///< by lock name
  };
  std::map<std::string, Table> tables_;
};

}  // namespace lockbench::watch
