#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "testbed/servers/kinds.h"
#include "tests/conformance/common/test_store.h"

namespace lockbench::test {

/// Looks into the streams of a NATS, independently of the code under test.
class NatsTestStore : public TestStore {
 public:
  using Json = nlohmann::json;

  testbed::Server& server() override { return *server_; }
  void clear() override;
  std::vector<std::string> keys() override;
  std::vector<std::string> staying() override { return keys_of(false); }
  std::optional<TimePoint> end_of(const std::string& key) override;
  void take_away(const std::vector<std::string>& keys) override;
  int other_connections() override { return connections_to(server_->port()); }

  /// JetStream's answer to a request: "STREAM.NAMES".
  Json ask(const std::string& request, const Json& payload = Json::object());
  std::vector<std::string> streams();
  /// The TTL of a bucket, by its stream; zero: none.
  std::chrono::nanoseconds max_age_of(const std::string& stream);
  void put(const std::string& subject, const std::string& value);

 private:
  struct Entry {
    std::string stream, subject, key, time, value;
  };
  /// All keys that are not marked as deleted.
  std::vector<Entry> entries();
  std::vector<std::string> keys_of(bool that_expire);

  const std::unique_ptr<testbed::Server> server_ = must(testbed::start_nats(shared_testbed()));
};

NatsTestStore& shared_nats();

}  // namespace lockbench::test
