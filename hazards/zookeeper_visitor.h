#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

#include "strategies/duration.h"

namespace lockbench::hazards {

// What somebody can do to a ZooKeeper who is no client of a lock. `servers`: "host:port,...". Every
// call is bounded by some seconds. Thread-safe.

/// Ends a session of somebody else's, as whoever knows its number can: the server makes a session's
/// password of its number alone. Fine if there is no such session any more. The owner's library may
/// come in between, in which case the session goes on: look, and try again.
tl::expected<void, std::string> end_zookeeper_session(const std::string& servers,
                                                      std::int64_t session);

/// The server's wall clock, as it stamps a node by it.
tl::expected<WallTime, std::string> zookeeper_wall_time(const std::string& servers);

}  // namespace lockbench::hazards
