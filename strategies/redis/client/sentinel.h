#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "strategies/redis/client/connection.h"
#include "strategies/redis/client/socket.h"

namespace lockbench::redis {

/// Puts one command to one server. The error says why there is no answer, without the server.
using AskServer =
    std::function<tl::expected<Reply, std::string>(const Endpoint& server, Command command)>;

/// Where the master is that the endpoint's sentinels watch: the first that knows is believed. The
/// same endpoint with host and port, and without sentinels. The error names the sentinel that
/// failed last, and no secret. (redis.io, "Guidelines for Redis clients with support for Redis
/// Sentinel")
tl::expected<Endpoint, std::string> find_master(const Endpoint& endpoint, const AskServer& ask);

/// Connects to the server, whose sentinels are asked first if it has any: within `timeout` for them
/// all, and as long again for the server. What they say may be old: greet() looks at the server
/// itself. The error says why there is none, without the endpoint.
tl::expected<std::unique_ptr<Transport>, std::string> connect_server(const Endpoint& endpoint,
                                                                     Duration timeout,
                                                                     const std::stop_token& stop);

}  // namespace lockbench::redis
