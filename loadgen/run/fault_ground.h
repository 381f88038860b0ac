#pragma once

#include <string>
#include <tl/expected.hpp>

#include "loadgen/run/fault.h"
#include "strategies/descriptor.h"

namespace lockbench::loadgen {

/// The servers of a run and the lines to them, where faults are made and healed. One call at a
/// time, from any thread.
class FaultGround {
 public:
  virtual ~FaultGround() = default;

  /// In force when the call returns. Must be healed, also if it failed half-way.
  virtual tl::expected<void, std::string> inject(const Descriptor& strategy,
                                                 const Fault& fault) = 0;
  /// Over, and the servers fit for the next fault, when the call returns; bounded by the time that
  /// servers may take to start.
  virtual tl::expected<void, std::string> heal(const Descriptor& strategy, const Fault& fault) = 0;
};

}  // namespace lockbench::loadgen
