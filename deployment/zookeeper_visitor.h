#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

#include "strategies/duration.h"

namespace lockbench::deployment {

// What can be done to a ZooKeeper from outside. `servers`: "host:port,...". Every call is bounded
// by a few seconds. Thread-safe.

/// Ends another client's session. Its number is enough: the server derives a session's password
/// from the number alone. No error if the session has ended already. If the owner's library
/// reconnects at the same time the session goes on: check, and try again.
tl::expected<void, std::string> end_zookeeper_session(const std::string& servers,
                                                      std::int64_t session);

/// The server's wall clock, read from the time stamp of a new node.
tl::expected<WallTime, std::string> zookeeper_wall_time(const std::string& servers);

}  // namespace lockbench::deployment
