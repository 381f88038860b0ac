#pragma once

#include <map>
#include <optional>
#include <string>

#include "strategies/memcached/client/replies.h"
#include "watch/sighting.h"
#include "watch/sources/steady_time.h"

namespace lockbench::watch {

/// Makes sightings of one connection's looks at the keys of a memcached. For one thread.
class MemcachedBook {
 public:
  /// A look at a key, which is not before `asked_at` and not after `answered_at`. `item`: nothing,
  /// there is none.
  Sighting looked(const std::string& key, const std::optional<memcached::Glance>& item,
                  TimePoint asked_at, TimePoint answered_at);

 private:
  std::map<std::string, SteadyTime> ends_;  ///< of the keys that were looked at
};

}  // namespace lockbench::watch
