#pragma once

#include <filesystem>
#include <system_error>

namespace lockbench::testbed {

/// Removes a file or folder of servers that have ended, and the shared memory of each PostgreSQL
/// that was killed there, which would stay until the machine is restarted.
void remove_remains(const std::filesystem::path& path, std::error_code& error);

}  // namespace lockbench::testbed
