#pragma once

#include <string_view>

#include "deployment/failure.h"
#include "strategies/duration.h"

namespace lockbench::hazards {

/// A step of the play itself came late, as on a machine that stalls. The play is then `not-played`:
/// what followed says nothing about the lock.
class Disturbed : public deployment::Failure {
 public:
  using Failure::Failure;
};

/// Throws Disturbed if `step`, which was due at `due`, happened later than that by more than
/// `tolerance`.
void require_in_time(std::string_view step, TimePoint due, TimePoint happened_at,
                     Duration tolerance);

}  // namespace lockbench::hazards
