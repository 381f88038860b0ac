#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/process/clock_shim.h"
#include "testbed/servers/machine.h"
#include "testbed/servers/ports.h"
#include "testbed/servers/server.h"

namespace lockbench::testbed {

inline constexpr Program kPostgres{"postgres", "postgresql"};
/// Who logs in, in PostgreSQL and in the poolers in front of it.
inline constexpr std::string_view kSuperuser = "postgres";
/// What a URL without TLS ends with. It leaves nothing to the environment.
inline constexpr std::string_view kPlainDatabase = "/postgres?gssencmode=disable&sslmode=disable";

struct PostgresOptions {
  std::uint32_t max_clients = 100;
  std::vector<std::string> config;   ///< further settings: "deadlock_timeout=2s"
  std::uint16_t primary_port = 0;    ///< follows the one there, as its replica; 0: a primary
  const TlsFiles* tls = nullptr;     ///< it speaks nothing but TLS; null: no TLS
  const ClockShim* clock = nullptr;  ///< the clock that it uses; null: the machine's
  PortChooser choose_port = free_loopback_port;
};

/// The server program, in PATH or where Debian keeps it; the newest version if there are several.
tl::expected<std::filesystem::path, std::string> find_postgres();

/// A PostgreSQL with a cluster of its own on a free loopback port, ready to be used: as durable as
/// PostgreSQL is by default. Its superuser logs in with the secret, also on its socket. Other
/// clusters are not touched.
tl::expected<std::unique_ptr<Server>, std::string> start_postgres(
    Testbed& testbed, const PostgresOptions& options = {});

}  // namespace lockbench::testbed
