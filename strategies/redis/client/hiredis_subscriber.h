#pragma once

#include <memory>

#include "strategies/redis/client/connection.h"

namespace lockbench::redis {

/// A subscriber over TCP or a unix socket.
std::unique_ptr<Subscriber> make_hiredis_subscriber(const Endpoint& endpoint,
                                                    Duration command_timeout, Env& env);

}  // namespace lockbench::redis
