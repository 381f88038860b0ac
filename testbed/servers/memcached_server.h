#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "testbed/process/clock_shim.h"
#include "testbed/servers/machine.h"
#include "testbed/servers/ports.h"
#include "testbed/servers/server.h"

namespace lockbench::testbed {

inline constexpr Program kMemcached{"memcached", "memcached"};

struct MemcachedOptions {
  std::uint32_t max_clients = 0;  ///< 0: as many as the open-file limit allows, at most 50,000
  std::uint32_t memory_megabytes = 64;
  const TlsFiles* tls = nullptr;     ///< it speaks nothing but TLS; null: no TLS
  const ClockShim* clock = nullptr;  ///< the clock that it uses; null: the machine's
  PortChooser choose_port = free_loopback_port;
};

/// A memcached on a free loopback port, TCP only, ready to be used. Its data does not survive a
/// restart.
tl::expected<std::unique_ptr<Server>, std::string> start_memcached(
    Testbed& testbed, const MemcachedOptions& options = {});

/// The answers to commands, with `whole` as in ask_until.
tl::expected<std::string, std::string> ask_memcached(
    const Server& server, std::string_view commands, std::chrono::milliseconds within,
    const std::function<bool(std::string_view)>& whole);

}  // namespace lockbench::testbed
