#pragma once

#include <memory>

#include "strategies/zookeeper/client/endpoint.h"
#include "watch/source.h"

namespace lockbench::watch {

/// The locks of one ZooKeeper ensemble.
std::unique_ptr<Source> make_zookeeper_source(zookeeper::Endpoint endpoint, const Request& request);

}  // namespace lockbench::watch
