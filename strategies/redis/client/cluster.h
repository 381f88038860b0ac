#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "strategies/redis/client/connection.h"

namespace lockbench::redis {

inline constexpr int kSlots = 16384;

/// The slot of a key: a checksum of its first {hash tag}, or of all of it without one.
int slot_of(std::string_view key);

/// Which server has which slots.
class SlotMap {
 public:
  /// From the answer to CLUSTER SLOTS of the server at `asked`, which stands for an address without
  /// a host. Nothing if it is another answer, or contradicts itself.
  static std::optional<SlotMap> read(const Reply& reply, const HostPort& asked);
  /// The slot's primary; null if none has it.
  const HostPort* owner(int slot) const;
  /// All primaries, each once.
  std::vector<HostPort> primaries() const;

 private:
  struct Range {
    int first, last;
    HostPort primary;
  };
  std::vector<Range> ranges_;  ///< by their first slots
};

/// The address in an error "MOVED 3999 10.0.0.1:6381" or "ASK 3999 10.0.0.1:6381" of the server at
/// `asked`, which stands for an address without a host.
std::optional<HostPort> redirected_to(std::string_view error, const HostPort& asked);

/// Connects to one server; its Env must outlive the connection.
using MakeConnection = std::function<std::unique_ptr<Connection>(
    const Endpoint& server, const Timeouts& timeouts, Env& env)>;

/// A connection to the servers of a cluster, each command to the server of its key's slot. Follows
/// MOVED and ASK, repeats a command after TRYAGAIN, and learns the slots anew after MOVED or if a
/// server cannot be reached; a few times for each command, and only if it took no effect before.
/// Repeated commands are reported with " redirected" behind their names. Commands of a transaction
/// stay together.
std::unique_ptr<Connection> make_cluster_connection(MakeConnection make, const Endpoint& cluster,
                                                    const Timeouts& timeouts, Env& env);

/// The cluster's primaries. `cluster` has such a URL.
StoreResult<std::vector<Endpoint>> primaries_of(const Endpoint& cluster, const Timeouts& timeouts,
                                                Env& env);

}  // namespace lockbench::redis
