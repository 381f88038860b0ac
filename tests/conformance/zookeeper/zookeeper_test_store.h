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

/// Looks into a ZooKeeper past the sessions under test, as its own user, one request after the
/// other. For one thread. Throws std::runtime_error where it cannot.
class ZookeeperProbe {
 public:
  explicit ZookeeperProbe(testbed::Server& server);
  ~ZookeeperProbe();

  /// Empty for a node that is not there.
  std::vector<std::string> children(const std::string& path);
  struct Facts {
    bool there = false;
    std::int64_t owner = 0;  ///< of an ephemeral node
  };
  Facts look(const std::string& path);
  /// A persistent node. `acl` as zkCli takes it, "digest:lockbench:HASH:cd"; empty: everybody may
  /// do anything.
  void make(const std::string& path, const std::string& acl = {});
  /// An ephemeral sequential node whose name begins so; the path that it got.
  std::string make_contender(const std::string& path);
  /// False if it was not there.
  bool remove(const std::string& path);
  void remove_tree(const std::string& path);
  /// How many connections have a session, this one apart.
  int other_connections();

  /// Ends another's session, by joining it and closing it. Its owner must not be connected.
  static void end_session(std::uint16_t port, std::int64_t session);

 private:
  /// The answer to one request, without its header.
  struct Answer {
    std::int32_t error = 0;
    std::string body;
  };

  /// Sends the request, of which `body` is what follows the header. A server that was away may be
  /// reached only after some trials.
  Answer ask(std::int32_t operation, const zookeeper::Writer& body);
  std::optional<Answer> try_to_ask(std::int32_t operation, const zookeeper::Writer& body);
  bool connect();

  const zookeeper::Endpoint endpoint_;
  const std::uint16_t port_;
  const std::unique_ptr<Env> env_ = make_system_env(0);
  std::unique_ptr<zookeeper::Link> link_;  ///< null without a connection
  std::int64_t session_ = 0;
  std::int32_t xid_ = 0;
};

/// The answer to one of ZooKeeper's commands of four letters, such as "cons".
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

  /// The server may have been killed meanwhile, but it is the same again.
  ZookeeperProbe& probe() { return *probe_; }

 private:
  std::unique_ptr<testbed::Server> server_;
  std::unique_ptr<ZookeeperProbe> probe_;
};

ZookeeperTestStore& shared_zookeeper();
std::vector<Property> zookeeper_properties();
/// Of a key without further colons.
std::string node_of(const std::string& key);

}  // namespace lockbench::test
