#pragma once

#include <memory>

#include "strategies/memcached/client/endpoint.h"
#include "watch/source.h"

namespace lockbench::watch {

/// The locks of one memcached whose keys the request names.
std::unique_ptr<Source> make_memcached_source(memcached::Endpoint endpoint, const Request& request);

}  // namespace lockbench::watch
