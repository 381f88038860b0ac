#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "testbed/process/clock_shim.h"
#include "testbed/servers/ports.h"
#include "testbed/servers/programs.h"
#include "testbed/servers/server.h"

namespace lockbench::testbed {

inline constexpr Program kMemcached{"memcached", "memcached"};

struct MemcachedOptions {
  std::uint32_t max_clients = 0;  ///< 0: as many as the open-file limit allows, at most 50,000
  std::uint32_t memory_megabytes = 64;
  const ClockShim* clock = nullptr;  ///< runs by this clock; null: by the machine's
  PortChooser choose_port = free_loopback_port;
};

class MemcachedServer final : public Server {
 public:
  /// "127.0.0.1:PORT"
  std::string address() const;

 private:
  friend class MemcachedStarter;
  using Server::Server;
};

/// A memcached on a free loopback port, TCP only, ready to be used. Nothing of it outlives a
/// restart.
tl::expected<std::unique_ptr<MemcachedServer>, std::string> start_memcached(
    Testbed& testbed, const MemcachedOptions& options = {});

}  // namespace lockbench::testbed
