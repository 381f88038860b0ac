#pragma once

#include <string>
#include <string_view>

#include "strategies/lease.h"

// The keys of a chubby lock. Below LOCK/ there is a queue of those who want it or have it, on their
// sessions' leases, and beside it a guard for each who has it, on a lease that outlives the session
// by the lock-delay. Both tell the mode, so that who shares can look at the exclusive ones alone.
namespace lockbench::etcd {

inline std::string_view letter_of(Mode mode) { return mode == Mode::exclusive ? "x" : "s"; }

/// Of all who want the lock, or of those who want it so.
inline std::string queue_of(const std::string& lock) { return lock + "/queue/"; }
inline std::string queue_of(const std::string& lock, Mode mode) {
  return queue_of(lock).append(letter_of(mode)).append("/");
}
inline std::string guards_of(const std::string& lock) { return lock + "/guard/"; }
inline std::string guards_of(const std::string& lock, Mode mode) {
  return guards_of(lock).append(letter_of(mode)).append("/");
}

}  // namespace lockbench::etcd
