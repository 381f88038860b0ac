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

// What looks at a SQL database tell of its locks and lock tables.
namespace lockbench::watch {

/// A lock that belongs to a session, with facts about the session.
struct SqlLock {
  std::string name, owner;  ///< the session: "process 17"
  bool shared = false, granted = false;
  std::optional<Duration> waited;  ///< if not granted, and if the server tells
  std::optional<Duration> idle;    ///< how long its session has been idle
  std::string who{};               ///< application and address, as far as we may see them
};

/// A table with ShedLock's columns: name, lock_until, locked_by.
struct SqlTable {
  std::string name;  ///< "public.shedlock"; also the prefix of its locks' names
  std::string sql;   ///< the name in statements
  bool readable = false, has_locked_at = false;
};

inline constexpr std::size_t kMostLocks = 4000;
inline constexpr std::size_t kMostTables = 20;
inline constexpr std::size_t kMostTableRows = 1000;  ///< of each table
/// A look also shows rows of lock tables that ended this many seconds ago: a release moves the end
/// to an earlier time, an expiry does not.
inline constexpr int kRemembered = 5;

/// A row of a lock table.
struct SqlRow {
  std::string name, owner;
  /// Time until it ends; negative: it has ended. Nothing: it never ends.
  std::optional<Duration> left;
  std::optional<Duration> held;  ///< if the table has the time of locking
};

/// The result of one look.
template <class Line>
struct SqlLines {
  std::vector<Line> lines;
  bool cut = false;             ///< there were more
  std::uint64_t malformed = 0;  ///< number of lines that could not be read
};
using SqlLook = SqlLines<SqlLock>;
using SqlTableLook = SqlLines<SqlRow>;

/// Reads a list of locks: name, owner, whether shared, whether granted, seconds waited and idle,
/// and who it is. Errors concern the answer as a whole; single unreadable lines are left out and
/// counted.
tl::expected<SqlLook, std::string> read_locks(std::string_view text);
/// Reads a list of tables: name, the same for statements, whether readable, whether it has
/// locked_at.
tl::expected<SqlLines<SqlTable>, std::string> read_tables(std::string_view text);
/// Reads a list for each table, of rows with name, owner, and the seconds that they are left and
/// held. One result per table, in the same order.
tl::expected<std::vector<SqlTableLook>, std::string> read_table_look(std::string_view text,
                                                                     std::size_t tables);

/// Turns looks at a SQL database into sightings. For one thread.
class SqlBook {
 public:
  /// Follows the locks that the request wants, at most `most` at a time.
  SqlBook(Request request, std::uint64_t most) : request_(std::move(request)), most_(most) {}

  /// Sightings of the locks of one look, and of those that have been freed since the look before.
  /// If a look was cut, a lock counts as freed once no look has shown it for a while. `at`: not
  /// after the look.
  std::vector<Sighting> locks(const SqlLook& look, TimePoint at);
  /// Sightings of the rows of one table. `table`: prefix of its locks' names, without the colon.
  /// The look took place between `asked_at` and `answered_at`.
  std::vector<Sighting> rows(const std::string& table, const SqlTableLook& look, TimePoint asked_at,
                             TimePoint answered_at);

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
