#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "strategies/duration.h"

namespace lockbench::zookeeper {

/// What the server at "host:port" says of itself, by the command "srvr", which servers answer
/// unless they have been told not to: "3.8.0". Nothing if it does not within the time.
std::optional<std::string> version_of(std::string_view server, Duration timeout);

/// "3.8.0" of "Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on ...".
std::optional<std::string> version_in(std::string_view answer);

}  // namespace lockbench::zookeeper
