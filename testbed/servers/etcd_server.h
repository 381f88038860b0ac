#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/proxy/mesh.h"
#include "testbed/servers/machine.h"
#include "testbed/servers/ports.h"
#include "testbed/servers/server.h"

namespace lockbench::testbed {

inline constexpr Program kEtcd{"etcd", "etcd-server"};
/// The user who may do everything: authentication cannot be enabled without one of this name.
inline constexpr std::string_view kEtcdRoot = "root";

struct EtcdOptions {
  Mesh* mesh = nullptr;           ///< what lies between the members of a cluster; null: nothing
  const TlsFiles* tls = nullptr;  ///< clients come by nothing but TLS; null: no TLS
  PortChooser choose_port = free_loopback_port;
};

/// An etcd of one member on a free loopback port; ready to be used, and as durable as etcd is by
/// default. Its elections are quicker than by default, so that its shortest lease is of one second.
tl::expected<std::unique_ptr<Server>, std::string> start_etcd(Testbed& testbed,
                                                              const EtcdOptions& options = {});

/// Members of one cluster, started side by side; ready when all of them serve. Those that are
/// restarted must keep their data.
tl::expected<std::vector<std::unique_ptr<Server>>, std::string> start_etcd_cluster(
    Testbed& testbed, int members = 3, const EtcdOptions& options = {});

}  // namespace lockbench::testbed
