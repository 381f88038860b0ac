#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "strategies/duration.h"

namespace lockbench::watch {

/// What the value of a lock's key says.
struct LockValue {
  std::string owner;  ///< empty: nobody, or an empty value
  /// A record that its holder rewrites, such as Kubernetes' Lease; else a token.
  bool is_record = false;
  std::optional<Duration> lasts;  ///< a record: for how long after each renewal
};

/// Reads a token, ShedLock's "ADDED:time@host", or a record with a field for the holder, in JSON or
/// as Kubernetes stores it. Nothing: the value names no owner, so its key is no lock. Takes any
/// bytes, also the first ones of a longer value.
std::optional<LockValue> read_lock_value(std::string_view value);

}  // namespace lockbench::watch
