#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/zookeeper/client/link.h"
#include "testbed/servers/kinds.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/common/test_store.h"

namespace lockbench::test {

/// Looks into a ZooKeeper server as a separate user, independently of the sessions under test. One
/// request at a time; for one thread. Throws std::runtime_error on failure.
class ZookeeperProbe {
 public:
  explicit ZookeeperProbe(testbed::Server& server);
  ~ZookeeperProbe();

  /// Empty if the node does not exist.
  std::vector<std::string> children(const std::string& path);
  struct Facts {
    bool there = false;
    std::int64_t owner = 0;  ///< session of an ephemeral node
  };
  Facts look(const std::string& path);
  /// Creates a persistent node. `acl` in zkCli's form, "digest:lockbench:HASH:cd"; empty: open to
  /// all.
  void make(const std::string& path, const std::string& acl = {});
  /// Creates an ephemeral sequential node with this prefix, and returns its path.
  std::string make_contender(const std::string& path);
  /// False if it did not exist.
  bool remove(const std::string& path);
  void remove_tree(const std::string& path);
  /// Number of connections with a session, without this one.
  int other_connections();

  /// Ends another client's session by joining and closing it. Its owner must not be connected.
  static void end_session(std::uint16_t port, std::int64_t session);

 private:
  /// An answer without its header.
  struct Answer {
    std::int32_t error = 0;
    std::string body;
  };

  /// Sends a request with this body after the header. A server that was down may need several
  /// attempts.
  Answer ask(std::int32_t operation, const zookeeper::Writer& body);
  std::optional<Answer> try_to_ask(std::int32_t operation, const zookeeper::Writer& body);
  bool connect();

  const zookeeper::Endpoint endpoint_;
  const std::uint16_t port_;
  const std::unique_ptr<Env> env_ = make_system_env(0);
  std::unique_ptr<zookeeper::Link> link_;  ///< null if not connected
  std::int64_t session_ = 0;
  std::int32_t xid_ = 0;
};

/// The answer to one of ZooKeeper's four-letter commands, such as "cons".
std::string four_letters(std::uint16_t port, const std::string& letters);

class ZookeeperTestStore : public TestStore {
 public:
  ZookeeperTestStore();

  testbed::Server& server() override { return *server_; }
  void clear() override { probe_->remove_tree("/lockbench"); }
  std::vector<std::string> keys() override;
  std::optional<TimePoint> end_of(const std::string& key) override;
  void take_away(const std::vector<std::string>& keys) override;
  int other_connections() override;

  /// The server may have been killed meanwhile, but has come back the same.
  ZookeeperProbe& probe() { return *probe_; }

 private:
  std::unique_ptr<testbed::Server> server_;
  std::unique_ptr<ZookeeperProbe> probe_;
};

ZookeeperTestStore& shared_zookeeper();
std::vector<Property> zookeeper_properties();
/// The node of a key without further colons.
std::string node_of(const std::string& key);

}  // namespace lockbench::test
