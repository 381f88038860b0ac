#pragma once

#include <memory>

#include "strategies/etcd/client/endpoint.h"
#include "watch/source.h"

namespace lockbench::watch {

/// The locks of one etcd cluster.
std::unique_ptr<Source> make_etcd_source(etcd::Endpoint endpoint, const Request& request);

}  // namespace lockbench::watch
