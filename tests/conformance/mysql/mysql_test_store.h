#pragma once

#include <memory>
#include <string>
#include <vector>

#include "testbed/servers/kinds.h"
#include "tests/conformance/common/sql_sessions.h"

struct st_mysql;

namespace lockbench::test {

/// Looks into a MariaDB server, independently of the code under test. For one thread. Throws
/// std::runtime_error if a statement fails.
class MysqlProbe {
 public:
  /// The testbed's user, who may do everything.
  explicit MysqlProbe(const testbed::Server& server);
  MysqlProbe(std::uint16_t port, const std::string& user, const std::string& password);

  /// All columns of all rows, one after the other; nulls as "".
  std::vector<std::string> ask(const std::string& sql);
  /// The first of them.
  std::string value(const std::string& sql) { return ask(sql).at(0); }

 private:
  struct Close {
    void operator()(st_mysql* connection) const;
  };
  std::unique_ptr<st_mysql, Close> connection_;
};

class MysqlTestStore : public SqlTestStore {
 public:
  MysqlTestStore();

  void clear() override;
  std::vector<std::string> keys() override;
  std::optional<TimePoint> end_of(const std::string& key) override;
  void take_away(const std::vector<std::string>& keys) override;
  int other_connections() override;
  int waiting() override;

  std::vector<std::string> ask(const std::string& sql) override { return probe().ask(sql); }

  /// A new one each time, as the server may have been killed meanwhile.
  MysqlProbe probe() { return MysqlProbe(server()); }
};

MysqlTestStore& shared_mysql();

}  // namespace lockbench::test
