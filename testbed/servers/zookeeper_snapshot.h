#pragma once

#include <string>
#include <string_view>

namespace lockbench::testbed {

/// A snapshot of a ZooKeeper without data, "snapshot.0", whose nodes only this digest user may
/// touch. A server without a snapshot would let everybody in until the ACL of its root is set.
std::string zookeeper_snapshot(std::string_view user, std::string_view password);

}  // namespace lockbench::testbed
