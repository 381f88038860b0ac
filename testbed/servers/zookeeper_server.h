#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/process/clock_shim.h"
#include "testbed/proxy/mesh.h"
#include "testbed/servers/ports.h"
#include "testbed/servers/server.h"

namespace lockbench::testbed {

/// Its name in messages: the program itself is a jar that Java runs.
inline constexpr std::string_view kZookeeper = "zookeeper";

struct ZookeeperOptions {
  std::vector<std::string> config;   ///< further settings, which replace ours: "snapCount=1000"
  std::vector<std::string> java;     ///< further arguments of Java's: "-Dname=value"
  const ClockShim* clock = nullptr;  ///< the clock that it uses; null: the machine's
  Mesh* mesh = nullptr;           ///< what lies between the members of an ensemble; null: nothing
  const TlsFiles* tls = nullptr;  ///< clients come by nothing but TLS; null: no TLS
  PortChooser choose_port = free_loopback_port;
};

/// Where Debian keeps the server's jar; the error also says if there is no Java to run it.
tl::expected<std::filesystem::path, std::string> find_zookeeper();
/// "3.8.0", taken from the jar's full name; "unknown" if that has none.
std::string zookeeper_version(const std::filesystem::path& jar);

/// A ZooKeeper on a free loopback port, ready to be used: as durable as ZooKeeper is by default,
/// for any number of clients. Its root belongs to the testbed's user. Other servers are not
/// touched.
tl::expected<std::unique_ptr<Server>, std::string> start_zookeeper(
    Testbed& testbed, const ZookeeperOptions& options = {});

/// An ensemble of `size` (three, or five), all of them ready. Only they can join it.
tl::expected<std::vector<std::unique_ptr<Server>>, std::string> start_zookeeper_ensemble(
    Testbed& testbed, int size = 3, const ZookeeperOptions& options = {});

/// "leader", "follower" or "standalone"; empty if it does not serve at the moment.
std::string zookeeper_mode(const Server& server);

}  // namespace lockbench::testbed
