#pragma once

#include "strategies/redis/client/connection.h"
#include "strategies/renewal.h"

namespace lockbench::redis {

/// How a lock on Redis is renewed: by a script with the lock as its key and token and milliseconds
/// as arguments, which returns 1 if the caller holds it; without a script, by a command that does
/// not check the owner.
struct RenewalProtocol {
  const Script* script = nullptr;
  /// PEXPIRE counts in milliseconds, EXPIRE in whole seconds.
  std::string_view unchecked = "PEXPIRE";

  std::string_view name() const { return script != nullptr ? script->name : unchecked; }
};

std::unique_ptr<RenewalChannel> make_renewal_channel(std::unique_ptr<Connection> connection,
                                                     const RenewalProtocol& protocol);

}  // namespace lockbench::redis
