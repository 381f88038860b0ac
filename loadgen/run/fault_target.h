#pragma once

#include <string>
#include <tl/expected.hpp>

#include "loadgen/run/fault.h"
#include "strategies/descriptor.h"

namespace lockbench::loadgen {

/// The servers of a run and the connections to them, on which faults are injected. One call at a
/// time, from any thread.
class FaultTarget {
 public:
  virtual ~FaultTarget() = default;

  /// The fault is in force when the call returns. Call heal() afterwards, also after an error.
  virtual tl::expected<void, std::string> inject(const Descriptor& strategy,
                                                 const Fault& fault) = 0;
  /// Returns when the fault is over and the servers are ready for the next one. Bounded by the time
  /// that servers may take to start.
  virtual tl::expected<void, std::string> heal(const Descriptor& strategy, const Fault& fault) = 0;
};

}  // namespace lockbench::loadgen
