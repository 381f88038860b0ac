#pragma once

#include "testbed/servers/kinds.h"
#include "tests/conformance/common/test_store.h"

namespace lockbench::test {

/// Looks into memcached by its text protocol, independently of the code under test.
class MemcachedTestStore : public TestStore {
 public:
  MemcachedTestStore();

  testbed::Server& server() override { return *server_; }
  void clear() override { ask("flush_all"); }
  /// Not by a dump, which may miss items while they move between lists.
  bool exists(const std::string& key) override { return ask("mg " + key).front() != "EN"; }
  std::vector<std::string> keys() override;
  std::optional<TimePoint> end_of(const std::string& key) override;
  void take_away(const std::vector<std::string>& keys) override;
  int other_connections() override;

  /// The lines of the answers. The server then closes the connection, so it is not counted
  /// afterwards.
  std::vector<std::string> ask(const std::string& commands) const;

 private:
  const std::unique_ptr<testbed::Server> server_;
};

inline MemcachedTestStore& shared_memcached() {
  return dynamic_cast<MemcachedTestStore&>(shared_store());
}

}  // namespace lockbench::test
