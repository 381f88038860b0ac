#pragma once

#include <functional>
#include <optional>

#include "strategies/redis/client/connection.h"
#include "strategies/renewal.h"

namespace lockbench::redis {

/// The replicas that a lock waits for with WAIT, and how long. Those that are connected at some
/// moment may not be all, and a lock that only these have is lost if another one takes over; so
/// their number is given.
struct ReplicaWait {
  int replicas = 0;  ///< that are waited for
  int needed = 0;    ///< of them
  Duration within{};

  /// Queues WAIT, which covers what the same connection wrote before.
  void queue(Connection& redis) const;
  /// Its answer; `refused` if too few have acknowledged. `seen` is told how many.
  StoreResult<void> receive(Connection& redis, const std::stop_token& stop,
                            const std::function<void(int)>& seen = {}) const;
};

/// How a lock on Redis is renewed: by a script with the lock as its key and token and milliseconds
/// as arguments, which returns 1 if the caller holds it; without a script, by a command that does
/// not check the owner.
struct RenewalProtocol {
  const Script* script = nullptr;
  /// PEXPIRE counts in milliseconds, EXPIRE in whole seconds.
  std::string_view unchecked = "PEXPIRE";

  std::string_view name() const { return script != nullptr ? script->name : unchecked; }
  /// The TTL that the server grants, rounded up to its unit.
  Duration granted(Duration ttl) const {
    if (in_seconds()) return std::chrono::seconds(ceil_seconds(ttl));
    return std::chrono::milliseconds(ceil_milliseconds(ttl));
  }
  /// The command's argument.
  std::string argument(Duration ttl) const {
    return std::to_string(in_seconds() ? ceil_seconds(ttl) : ceil_milliseconds(ttl));
  }

 private:
  bool in_seconds() const { return script == nullptr && unchecked == "EXPIRE"; }
};

/// With `wait`, a renewal counts once enough replicas have it.
std::unique_ptr<RenewalChannel> make_renewal_channel(std::unique_ptr<Connection> connection,
                                                     const RenewalProtocol& protocol,
                                                     std::optional<ReplicaWait> wait = {});

}  // namespace lockbench::redis
