#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options/options.h"
#include "deployment/servers.h"
#include "loadgen/run/fault_target.h"

namespace lockbench::cli {

/// The private servers of a deployment, and the lines to them, as ground for the faults of `run`.
class DeployedFaults : public loadgen::FaultTarget {
 public:
  /// The deployment outlives it.
  DeployedFaults(const RunOptions& options, const Deployment& deployment);

  tl::expected<void, std::string> inject(const Descriptor& strategy,
                                         const loadgen::Fault& fault) override;
  tl::expected<void, std::string> heal(const Descriptor& strategy,
                                       const loadgen::Fault& fault) override;

  /// Something could not be made or healed. Once the runs are over.
  bool failed() const { return failed_; }

 private:
  using Done = tl::expected<void, std::string>;

  Done make(const Site& site, const Descriptor& strategy, const loadgen::Fault& fault);
  Done mend(const Site& site, const loadgen::Fault& fault);
  Done kill_leader(const Site& site, const Descriptor& strategy);
  Done replace_leader(const Site& site);

  const Deployment& deployment_;
  const Duration rtt_;
  testbed::Server* killed_leader_ = nullptr;
  bool failed_ = false;
};

}  // namespace lockbench::cli
