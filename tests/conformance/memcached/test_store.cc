#include "tests/conformance/common/test_store.h"

#include <fmt/format.h>

#include "deployment/failure.h"
#include "strategies/carrier.h"
#include "testbed/servers/kinds.h"
#include "tests/conformance/memcached/probe.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

class MemcachedTestStore : public TestStore {
 public:
  MemcachedTestStore() : server_(deployment::need(testbed::start_memcached(shared_testbed()))) {}

  testbed::Server& server() override { return *server_; }
  void clear() override { MemcachedProbe(server_->port()).ask("flush_all", "OK"); }
  /// A dump may miss what is just being moved between lists.
  bool exists(const std::string& key) override {
    return MemcachedProbe(server_->port()).time_to_live(key).has_value();
  }
  std::vector<std::string> keys() override { return MemcachedProbe(server_->port()).keys(); }
  std::optional<TimePoint> end_of(const std::string& key) override {
    const auto left = MemcachedProbe(server_->port()).time_to_live(key);
    if (!left || *left < 0) return std::nullopt;
    return Carrier::current().now() + std::chrono::seconds(*left);
  }
  void take_away(const std::vector<std::string>& keys) override {
    MemcachedProbe probe(server_->port());
    for (const std::string& key : keys) probe.ask("delete " + key, "");
  }
  int other_connections() override { return std::stoi(probe_->stats().at("curr_connections")); }

 private:
  std::unique_ptr<testbed::Server> server_;
  // Kept, so that counting connections does not change their number.
  std::unique_ptr<MemcachedProbe> probe_ = std::make_unique<MemcachedProbe>(server_->port());
};

TestStore& shared() {
  static MemcachedTestStore tested;
  return tested;
}

std::unique_ptr<TestStore> make() { return std::make_unique<MemcachedTestStore>(); }

const TestedStoreRegistration registration(
    {.name = "memcached", .backends = {"memcached"}, .shared = shared, .make = make});

}  // namespace

}  // namespace lockbench::test
