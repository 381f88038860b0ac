#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/sql/session.h"
#include "watch/sources/server_source.h"
#include "watch/sources/sql_locks.h"

namespace lockbench::watch {

/// Base of the watch over the locks and lock tables of one SQL server, which it looks at, at a
/// rate. Runs only SELECT. A store's watch sets the members below, and says in `facts_` what cannot
/// be seen.
class SqlWatch : public Watching {
 public:
  void run();

 protected:
  explicit SqlWatch(const Watching& watching);

  /// The server ends each SELECT after this time, before the client would have to reconnect.
  Duration longest() const { return request_.command_timeout * 3 / 4; }
  [[noreturn]] void misread(std::string_view why) const {
    throw Failure(fmt::format("{}: {}", session_->display(), why));
  }
  /// The one value of a SELECT. Nothing if the server refuses it, with its reason in `refused`;
  /// without that, it must not.
  std::optional<std::string> ask(std::string_view name, std::string_view select,
                                 std::string* refused = nullptr);
  /// Finds tables with ShedLock's columns by a SELECT for read_tables. `rows_of` makes a SELECT for
  /// the list of a table's rows, for read_table_look.
  void find_tables(std::string_view select, std::string (*rows_of)(const SqlTable&));

  std::unique_ptr<sql::Session> session_;
  sql::Statement::How how_ = sql::Statement::How::once;
  std::string before_;  ///< what limits the SELECT that follows it
  std::string locks_;   ///< a SELECT for read_locks; empty: only lock tables are looked at
  std::string locks_in_;
  std::vector<SqlTable> tables_;
  SourceFacts facts_;  ///< without `waiters`, the looks do not show who waits

 private:
  /// Also nothing if a table was locked or the server took too long.
  std::optional<std::string> try_ask(std::string_view name, std::string_view select,
                                     std::string* refused = nullptr);
  Duration shortest() const;
  void look_at_locks();
  void look_at_tables();
  void take(std::vector<Sighting> seen);

  SqlBook book_;
  bool answered_ = false;  ///< has been: logging in takes no time any more
  std::string rows_;       ///< a SELECT for read_table_look
  Duration took_{};        ///< round trip of the latest statement
  TimePoint tables_at_{};  ///< time of the next look at them
};

}  // namespace lockbench::watch
