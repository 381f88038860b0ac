#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

#include "testbed/servers/server.h"
#include "testbed/servers/testbed.h"

namespace lockbench::testbed {

/// Makes a server note which of its data it has synced, if it does so through the C library. Throws
/// Failure if something is missing for that.
void put_under_sync_shim(const Testbed& testbed, ServerSpec& server);

/// For a server that was killed: cuts each of its data files where it was last synced, as if its
/// host had crashed, and returns how many bytes were lost. A file that was never synced is empty
/// then. Fails if the server has synced nothing. Directories and their names are kept.
tl::expected<std::uintmax_t, std::string> forget_unsynced(const Server& server);

}  // namespace lockbench::testbed
