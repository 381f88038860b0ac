#pragma once

#include <memory>
#include <string>
#include <vector>

#include "testbed/servers/kinds.h"
#include "tests/conformance/common/sql_sessions.h"

struct pg_conn;

namespace lockbench::test {

/// Looks into a PostgreSQL server, independently of the code under test. For one thread. Throws
/// std::runtime_error if a statement fails.
class PostgresProbe {
 public:
  explicit PostgresProbe(const std::string& dsn);

  /// All columns of all rows, one after the other; nulls as "".
  std::vector<std::string> ask(const std::string& sql, const std::vector<std::string>& values = {});

 private:
  struct Finish {
    void operator()(pg_conn* connection) const;
  };
  std::unique_ptr<pg_conn, Finish> connection_;
};

class PostgresTestStore : public SqlTestStore {
 public:
  PostgresTestStore();

  void clear() override;
  std::vector<std::string> keys() override;
  std::optional<TimePoint> end_of(const std::string& key) override;
  void take_away(const std::vector<std::string>& keys) override;
  int other_connections() override;
  int waiting() override;
  std::vector<std::string> ask(const std::string& sql) override { return probe().ask(sql); }

  /// A new one each time, as the server may have been killed meanwhile.
  PostgresProbe probe() { return PostgresProbe(server().url()); }
};

PostgresTestStore& shared_postgres();

}  // namespace lockbench::test
