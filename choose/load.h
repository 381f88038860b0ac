#pragma once

#include <optional>
#include <string>
#include <vector>

#include "choose/requirements.h"
#include "results/file/model.h"

namespace lockbench::choose {

/// The load on a lock; unknown parts are nothing. Times are in seconds.
struct Load {
  std::optional<double> clients;  ///< that share one lock
  std::optional<double> work;     ///< that a section takes
  std::optional<double> rate;     ///< sections per second; nothing: each client asks again at once

  bool contended() const { return clients.value_or(1) > 1; }
};

Load asked_load(const Requirements& requirements);
Load measured_load(const results::Result& result);

/// The distance of the measured load from the requested one; 0: the same in all requested parts.
double distance(const Load& asked, const Load& measured);

/// One difference of the measured load from the requested one.
struct Difference {
  std::string text;      ///< "8 clients at a lock instead of 200"
  bool lighter = false;  ///< than what was asked
};
std::vector<Difference> differences(const Load& asked, const Load& measured);

}  // namespace lockbench::choose
