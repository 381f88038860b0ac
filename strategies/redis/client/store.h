#pragma once

#include <memory>

#include "strategies/redis/client/connection.h"
#include "strategies/store.h"

namespace lockbench::redis {

/// A Redis server from the outside: INFO for the facts, UNLINK for tidying up.
std::unique_ptr<Store> make_store(const Endpoint& endpoint, ConnectionFactory& factory,
                                  Duration command_timeout);

}  // namespace lockbench::redis
