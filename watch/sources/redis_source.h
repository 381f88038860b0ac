#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/redis/client/endpoint.h"
#include "watch/source.h"

namespace lockbench::watch {

/// The locks of one Redis.
std::unique_ptr<Source> make_redis_source(redis::Endpoint endpoint, const Request& request);

/// Those of several independent nodes on which locks are taken by a majority.
std::unique_ptr<Source> make_redis_quorum(const std::vector<redis::Endpoint>& nodes,
                                          const Request& request);

}  // namespace lockbench::watch
