#pragma once

#include <memory>
#include <string>
#include <vector>

struct pg_conn;

namespace lockbench::test {

/// Looks into a PostgreSQL past the code under test. For one thread. Throws std::runtime_error
/// where a statement fails.
class PostgresProbe {
 public:
  explicit PostgresProbe(const std::string& dsn);

  /// The rows, with their columns one after the other, nulls as "".
  std::vector<std::string> ask(const std::string& sql, const std::vector<std::string>& values = {});

 private:
  struct Finish {
    void operator()(pg_conn* connection) const;
  };
  std::unique_ptr<pg_conn, Finish> connection_;
};

}  // namespace lockbench::test
