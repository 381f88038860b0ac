#pragma once

#include <optional>

#include "strategies/redis/client/replicas.h"
#include "strategies/renewal.h"

namespace lockbench::redis {

/// How a lock on Redis is renewed: by a script with the lock as its key and token and milliseconds
/// as arguments, which returns 1 if the caller holds it; without a script, by a command that does
/// not check the owner.
struct RenewalProtocol {
  const Script* script = nullptr;
  /// PEXPIRE counts in milliseconds, EXPIRE in whole seconds.
  std::string_view unchecked = "PEXPIRE";
  /// A renewal counts once enough replicas have it.
  std::optional<ReplicaWait> wait{};

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

std::unique_ptr<RenewalChannel> make_renewal_channel(std::unique_ptr<Connection> connection,
                                                     const RenewalProtocol& protocol);

}  // namespace lockbench::redis
