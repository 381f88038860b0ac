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

// What PostgreSQL is asked about its locks and its tables of locks, what it answers, and what
// follows.
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

/// A table that says who holds which lock until when, as ShedLock's does, as the user names it or
/// as it was found. Names are as the catalogue has them.
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

/// The table with these columns: those that `wanted` names, or those of ShedLock and its like.
/// Nothing: it is no lock table, or lacks them.
std::optional<PostgresTable> with_columns(PostgresTable wanted,
                                          const std::vector<std::string>& columns);

/// Asks for the rows of locks that are held or ended a short while ago: one value, for
/// read_table_look.
std::string table_look(const std::vector<PostgresTable>& tables);
inline constexpr std::size_t kMostTableRows = 1000;  ///< of each table

/// A row of a lock table.
struct PostgresRow {
  std::string name, owner;
  /// Until it ends; negative: it has ended. Nothing: it never does.
  std::optional<Duration> left;
  std::optional<Duration> held;  ///< where the table says since when
};

/// What one look showed.
template <class Line>
struct PostgresLines {
  std::vector<Line> lines;
  bool cut = false;             ///< there were more
  std::uint64_t malformed = 0;  ///< lines that could not be read
};
using PostgresLook = PostgresLines<PostgresLock>;
using PostgresTableLook = PostgresLines<PostgresRow>;

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

/// Makes sightings of looks at one PostgreSQL. For one thread.
class PostgresBook {
 public:
  /// Follows locks whose names match one of the patterns, `most` of them at once.
  PostgresBook(std::vector<std::string> patterns, std::uint64_t most)
      : patterns_(std::move(patterns)), most_(most) {}

  /// The locks of one look, and those that were there at the look before and are free now. Of a
  /// look that was cut, those that no look has shown for a while. `at`: not after the look.
  std::vector<Sighting> locks(const PostgresLook& look, TimePoint at);
  /// The rows of one table. `table`: what the names of its locks begin with, without the colon.
  /// The look is not before `asked_at` and not after `answered_at`.
  std::vector<Sighting> rows(const std::string& table, const PostgresTableLook& look,
                             TimePoint asked_at, TimePoint answered_at);

  /// Locks that were not followed, since the last call: there were too many.
  std::uint64_t take_left_out() { return std::exchange(left_out_, 0); }

 private:
  using Known = std::map<std::string, Sighting>;

  /// The latest sightings are now these: notes since when each party is there, adds those that are
  /// free now.
  std::vector<Sighting> replace(Known& known, Known now, bool first, bool cut, TimePoint at);

  const std::vector<std::string> patterns_;
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
    std::map<std::string, Row> rows;  ///< by the name of their lock
  };
  std::map<std::string, Table> tables_;
};

}  // namespace lockbench::watch
