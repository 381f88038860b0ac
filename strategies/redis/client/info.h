#pragma once

#include <string>
#include <string_view>

#include "strategies/redis/client/connection.h"

namespace lockbench::redis {

/// The value of "name:value\r\n" in the answer to INFO; empty if it is missing.
std::string info_field(std::string_view info, std::string_view name);

/// The number of connected replicas.
StoreResult<int> connected_replicas(Connection& redis, const std::stop_token& stop = {});

}  // namespace lockbench::redis
