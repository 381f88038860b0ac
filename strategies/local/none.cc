#include "strategies/registry.h"

namespace lockbench {
namespace {

/// No lock: a control that the audit must catch.
class None : public LockStrategy {
 public:
  explicit None(const Context&) {}

  StoreResult<void> connect() override { return {}; }

  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result;
    result.outcome = AcquireOutcome::acquired;
    result.attempts = 1;
    result.lease = Lease{.key = std::string(request.key),
                         .mode = request.mode,
                         .state = std::make_shared<LeaseState>(TimePoint::max())};
    return result;
  }

  ReleaseResult release(const Lease&) override { return {ReleaseOutcome::released, {}}; }

  RenewResult renew(const Lease&, Duration) override { return {RenewOutcome::unsupported, {}}; }
};

const Registration none(Descriptor{
    .name = "none",
    .backend = "local",
    .summary = "No lock: the control that must lose updates",
    .source = "control",
    .typical = true,
    .traits =
        {.expiry = Expiry::none, .promises_exclusion = false, .nodes = 0, .waiting_choices = {}},
    .hazards = {{"contention", HazardOutcome::lost_update}},
    .make = construct<None>,
});

}  // namespace
}  // namespace lockbench
