#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "strategies/redis/client/connection.h"
#include "watch/sources/redis_look.h"

namespace lockbench::watch {

/// Goes through the keys of a server that match one of the patterns, again and again.
class KeyScan {
 public:
  /// Without patterns: through all keys.
  KeyScan(redis::Connection& connection, std::vector<std::string> patterns);

  /// One command. The keys may come twice.
  StoreResult<std::vector<std::string>> step(const std::stop_token& stop);
  /// Whether the next step begins again.
  bool at_start() const { return pattern_ == 0 && cursor_ == "0"; }

 private:
  redis::Connection& connection_;
  std::vector<std::string> globs_;
  std::size_t pattern_ = 0;
  std::string cursor_ = "0";
};

/// Which keys look like locks, where the user named none.
class KeyProposals {
 public:
  /// Whether a look at the key can tell something new.
  bool is_new(const std::string& key);
  /// The pattern of its name; nothing: it does not look like a lock.
  std::optional<std::string> judge(const std::string& key, const RedisLook::Answer& looked);

 private:
  void leave_out(const std::string& pattern);

  std::set<std::string> patterns_;  ///< proposed
  std::set<std::string> others_;    ///< looked at, and no locks
};

}  // namespace lockbench::watch
