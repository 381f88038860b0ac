#pragma once

#include <memory>
#include <string>

#include "testbed/servers/kinds.h"
#include "tests/conformance/common/test_store.h"
#include "tests/conformance/postgres/probe.h"

namespace lockbench::test {

inline constexpr const char* kSchema = "lockbench_conformance";

class PostgresTestStore : public TestStore {
 public:
  PostgresTestStore();

  testbed::Server& server() override { return *server_; }
  void clear() override;
  std::vector<std::string> keys() override;
  std::optional<TimePoint> end_of(const std::string& key) override;
  void take_away(const std::vector<std::string>& keys) override;
  int other_connections() override;

  /// Anew each time: the server may have been killed meanwhile.
  PostgresProbe probe() const { return PostgresProbe(server_->url()); }
  int waiting() override;

 private:
  std::unique_ptr<testbed::Server> server_;
};

PostgresTestStore& shared_postgres();

}  // namespace lockbench::test
