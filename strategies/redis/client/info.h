#pragma once

#include <string>
#include <string_view>

#include "strategies/redis/client/connection.h"

namespace lockbench::redis {

/// The value of "name:value\r\n" in INFO's text; empty if it is not there.
std::string info_field(std::string_view info, std::string_view name);

/// How many replicas the server has, those apart that are not connected.
StoreResult<int> connected_replicas(Connection& redis, const std::stop_token& stop = {});

}  // namespace lockbench::redis
