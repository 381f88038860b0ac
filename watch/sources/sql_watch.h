#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/sql/session.h"
#include "watch/sources/server_source.h"
#include "watch/sources/sql_locks.h"

namespace lockbench::watch {

/// Base of the watch over the locks and lock tables of one SQL server, which it looks at, at a
/// rate.
class SqlWatch : public Watching {
 public:
  virtual ~SqlWatch() = default;
  void run();

 protected:
  explicit SqlWatch(const Watching& watching);
  SqlWatch(const SqlWatch&) = delete;
  SqlWatch& operator=(const SqlWatch&) = delete;

  virtual sql::Session& session() = 0;
  /// A statement that gives the one value of the SELECT, which the server ends after so many
  /// milliseconds, and which waits for no lock for long.
  virtual sql::Statement reading(std::string_view name, const std::string& select,
                                 std::int64_t milliseconds) const = 0;
  /// The SELECT for all locks, and how to read its value.
  virtual std::string lock_look() const = 0;
  virtual tl::expected<SqlLook, std::string> read_lock_look(std::string_view text) const = 0;
  /// The SELECT for `tables_`; its value is for read_table_look.
  virtual std::string table_look() const = 0;
  /// Completes the facts with store, waiters, and what cannot be seen.
  virtual void describe(SourceFacts& facts) const = 0;

  [[noreturn]] void misread(std::string_view why) {
    throw Failure(fmt::format("{}: {}", session().display(), why));
  }
  /// The one value of a SELECT; nothing if a table was locked or the server took too long. With
  /// `refused`, also nothing if the server refuses the statement, with its reason there.
  std::optional<std::string> try_ask(std::string_view name, const std::string& select,
                                     std::string* refused = nullptr);
  std::string ask(std::string_view name, const std::string& select);
  /// Finds tables with ShedLock's columns by a SELECT for a list of schema, table, whether we may
  /// read it, and whether it has locked_at.
  void find_tables(const std::string& select);

  std::string locks_in_;       ///< what is looked at, for people
  bool tells_waiters_ = true;  ///< the looks show who waits
  std::vector<SqlTable> tables_;

 private:
  SourceFacts facts();
  Duration shortest() const;
  void look_at_locks();
  void look_at_tables();
  void take(std::vector<Sighting> seen);

  SqlBook book_;
  bool answered_ = false;            ///< has been: logging in takes no time any more
  std::vector<std::string> closed_;  ///< lock tables that we may not read
  Duration took_{};                  ///< round trip of the latest statement
  TimePoint tables_at_{};            ///< time of the next look at them
};

}  // namespace lockbench::watch
