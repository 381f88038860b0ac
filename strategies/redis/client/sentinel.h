#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "strategies/redis/client/connection.h"
#include "strategies/transport/socket.h"

namespace lockbench::redis {

/// Sends one command to one server. The error says why there is no answer, without naming the
/// server.
using AskServer =
    std::function<tl::expected<Reply, std::string>(const Endpoint& server, Command command)>;

/// Asks the endpoint's sentinels for their master and believes the first that knows it. Returns the
/// endpoint with the master's host and port, and without sentinels. The error names the sentinel
/// that failed last, and no secret. (redis.io, "Guidelines for Redis clients with support for Redis
/// Sentinel")
tl::expected<Endpoint, std::string> find_master(const Endpoint& endpoint, const AskServer& ask);

/// Connects to the endpoint's server. If it has sentinels, they are asked first: `timeouts.answer`
/// is for all of them, and again for the server. Their answer may be out of date; greet() checks
/// the server's role. The error says why there is no connection, without naming the endpoint.
tl::expected<std::unique_ptr<Transport>, std::string> connect_server(const Endpoint& endpoint,
                                                                     const Timeouts& timeouts,
                                                                     const std::stop_token& stop);

}  // namespace lockbench::redis
