#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options/options.h"
#include "testbed/servers/server.h"
#include "testbed/servers/testbed.h"

namespace lockbench::cli {

/// One kind of store, as the command line sees it: whose servers they are, and how to have our own.
/// All else is known to its StoreKind.
struct Backend {
  std::string_view name;     ///< as in descriptors
  std::string_view option;   ///< that names the user's own servers: "--redis"
  std::string_view program;  ///< of a private server
  tl::expected<std::filesystem::path, std::string> (*find_program)();
  /// Ready for so many connections. Thread-safe.
  tl::expected<std::unique_ptr<testbed::Server>, std::string> (*start)(testbed::Testbed& testbed,
                                                                       std::uint32_t connections);
  /// Of a private server, or a line to one, on this loopback port.
  std::string (*url_on)(std::uint16_t port);
  /// Several servers that are one store together, for those that can be; null for the others.
  tl::expected<std::vector<std::shared_ptr<testbed::Server>>, std::string> (*start_cluster)(
      testbed::Testbed& testbed, int members) = nullptr;
  std::string (*url_on_all)(const std::vector<std::uint16_t>& ports) = nullptr;
  /// Whether this one of them leads the others.
  bool (*leads)(const testbed::Server& server) = nullptr;
  /// Null where the program itself tells, asked with --version.
  std::string (*program_version)(const std::filesystem::path& program) = nullptr;
};

const std::vector<Backend>& backends();
/// Null for what needs no server.
const Backend* find_backend(std::string_view name);

}  // namespace lockbench::cli
