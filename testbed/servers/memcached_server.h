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
  const ClockShim* clock = nullptr;  ///< the clock that it uses; null: the machine's
  PortChooser choose_port = free_loopback_port;
};

/// A memcached on a free loopback port, TCP only, ready to be used. Its data does not survive a
/// restart.
tl::expected<std::unique_ptr<Server>, std::string> start_memcached(
    Testbed& testbed, const MemcachedOptions& options = {});

}  // namespace lockbench::testbed
