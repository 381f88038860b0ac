#pragma once

#include <vector>

#include "choose/settings.h"

namespace lockbench::choose {

/// How long a grant lasts, and what prolongs it.
struct Lifetime {
  Duration ttl{};  ///< 0: for ever
  std::vector<Setting> settings;
};

/// Without renewal the TTL must outlast the work; with it, it is how long a crash blocks everybody.
Lifetime lifetime_of(const Descriptor& strategy, const Requirements& requirements,
                     const Evidence& evidence);

}  // namespace lockbench::choose
