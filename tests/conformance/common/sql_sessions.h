#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deployment/failure.h"
#include "strategies/registry.h"
#include "tests/conformance/common/waiter.h"
#include "tests/support/test_names.h"

namespace lockbench::test {

/// The schema of the checks' keys in a database.
inline constexpr const char* kSchema = "lockbench_conformance";

/// One database server.
class SqlTestStore : public TestStore {
 public:
  explicit SqlTestStore(testbed::StartedServer started)
      : server_(deployment::need(std::move(started))) {}

  testbed::Server& server() override { return *server_; }
  /// Independently of the code under test, on a new connection: all columns of all rows, one after
  /// the other; nulls as "". Throws std::runtime_error if the statement fails.
  virtual std::vector<std::string> ask(const std::string& sql) = 0;

 private:
  const std::unique_ptr<testbed::Server> server_;
};

inline SqlTestStore& shared_database() { return dynamic_cast<SqlTestStore&>(shared_store()); }

/// The locks that wait in a database's queue and live in a session.
class SqlSessions : public testing::TestWithParam<std::string_view> {
 protected:
  /// A waiter that has its connection and schema before it starts, so that only the wait is left.
  static std::unique_ptr<Client> warm_client(Bench& bench) {
    std::unique_ptr<Client> client = bench.client();
    warm_up(*client, bench.key() + ":warm");
    return client;
  }

  const Descriptor& strategy_ = *find_strategy(GetParam());
  HeldBench bench_{kLongTtl, strategy_};
};

}  // namespace lockbench::test
