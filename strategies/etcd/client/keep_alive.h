#pragma once

#include <memory>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/renewal.h"

namespace lockbench::etcd {

/// Has the run's scheduler keep etcd leases alive from their grant on. `leases`: the last is the one
/// of this TTL, whose validity `state` shows; those before it have longer TTLs and are renewed right
/// before it, so that they end later by the difference when the renewals cease.
std::shared_ptr<Renewal> keep_alive(const Context& context, const Endpoint& endpoint,
                                    const std::vector<LeaseId>& leases, Duration ttl,
                                    TimePoint asked_at, std::shared_ptr<LeaseState> state);

}  // namespace lockbench::etcd
