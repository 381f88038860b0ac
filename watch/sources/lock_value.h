#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockbench::watch {

/// What the value of a lock's key says.
struct LockValue {
  std::string owner;       ///< empty: nobody, or an empty value
  bool is_record = false;  ///< a record with a field for the owner, in JSON; else a token
};

/// Reads a token, ShedLock's "ADDED:time@host", or a record in JSON. Nothing: the value names no
/// owner, so its key is no lock. Takes any bytes, also the first ones of a longer value.
std::optional<LockValue> read_lock_value(std::string_view value);

}  // namespace lockbench::watch
