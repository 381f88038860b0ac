#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "testbed/servers/machine.h"
#include "testbed/servers/ports.h"
#include "testbed/servers/server.h"

namespace lockbench::testbed {

inline constexpr Program kPgbouncer{"pgbouncer", "pgbouncer"};

struct PgbouncerOptions {
  std::string pool_mode = "transaction";  ///< or "session"
  int pool_size = 20;                     ///< server sessions
  PortChooser choose_port = free_loopback_port;
};

/// The program, in PATH or in /usr/sbin.
tl::expected<std::filesystem::path, std::string> find_pgbouncer();

/// A PgBouncer on a free loopback port, in front of the PostgreSQL on port `postgres`; ready to be
/// used by its superuser. It opens server connections as they are needed, and gives a client the
/// one that was used last.
tl::expected<std::unique_ptr<Server>, std::string> start_pgbouncer(
    Testbed& testbed, std::uint16_t postgres, const PgbouncerOptions& options = {});

}  // namespace lockbench::testbed
