#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/runner.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

/// What renewal costs, by the number of locks that are held: the throughput of other clients on the
/// same server with the locks held and renewed against without, in pairs of runs made in turn.
struct RenewalPlan {
  std::string run_id;
  Endpoints endpoints;
  std::vector<std::uint64_t> held;
  std::uint64_t most_threads = 0;  ///< up to so many also with a thread per lock
  int pairs = 1;
  /// The other clients': each on a lock of its own. Its TTL is that of the held locks.
  Workload foreground;
};

/// What is being measured, as one line.
using OnStep = std::function<void(const std::string& line)>;

/// Measures point after point. A stop ends it early, with the points that are complete; the error
/// says why one could not be measured. Held locks are given back, whatever happens.
struct RenewalMeasured {
  std::vector<results::RenewalPoint> points;
  std::string error;  ///< empty if all went well
  bool interrupted = false;
};
RenewalMeasured measure_renewal(const RenewalPlan& plan, const OnStep& on_step,
                                const std::stop_token& stop);

}  // namespace lockbench::loadgen
