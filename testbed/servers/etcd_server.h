#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/servers/ports.h"
#include "testbed/servers/programs.h"
#include "testbed/servers/server.h"

namespace lockbench::testbed {

inline constexpr Program kEtcd{"etcd", "etcd-server"};

struct EtcdOptions {
  std::vector<std::string> arguments;  ///< further ones: "--auth-token-ttl=2"
  PortChooser choose_port = free_loopback_port;
};

class EtcdServer final : public Server {
 public:
  /// "http://127.0.0.1:PORT"
  std::string url() const;

 private:
  friend class EtcdStarter;
  using Server::Server;
};

/// An etcd of one member on free loopback ports, the first for its clients and the second for its
/// peers; ready to be used, and as durable as etcd is by default. Its elections are quicker than by
/// default, so that its shortest lease is of one second.
tl::expected<std::unique_ptr<EtcdServer>, std::string> start_etcd(Testbed& testbed,
                                                                  const EtcdOptions& options = {});

/// Members of one cluster. Those that are restarted must keep their data.
class EtcdCluster {
 public:
  std::size_t size() const { return members_.size(); }
  EtcdServer& member(std::size_t index) { return *members_.at(index); }
  /// "http://127.0.0.1:PORT,127.0.0.1:PORT,..."
  std::string url() const;

 private:
  friend tl::expected<std::unique_ptr<EtcdCluster>, std::string> start_etcd_cluster(
      Testbed& testbed, int members, const EtcdOptions& options);
  explicit EtcdCluster(std::vector<std::unique_ptr<EtcdServer>> members)
      : members_(std::move(members)) {}

  std::vector<std::unique_ptr<EtcdServer>> members_;
};

/// Started side by side; ready when all of them serve.
tl::expected<std::unique_ptr<EtcdCluster>, std::string> start_etcd_cluster(
    Testbed& testbed, int members = 3, const EtcdOptions& options = {});

/// Whether it leads its cluster; false if it does not answer.
bool etcd_leads(const EtcdServer& server);

}  // namespace lockbench::testbed
