#pragma once

#include <string>
#include <tl/expected.hpp>

#include "deployment/deployment.h"
#include "loadgen/run/fault.h"

namespace lockbench::cli {

/// Injects the faults of a run into the private servers of a deployment, and the lines to them.
class FaultServers : public loadgen::FaultTarget {
 public:
  /// `rtt`: what the lines add to a round trip. The deployment outlives it.
  FaultServers(const deployment::Deployment& deployment, Duration rtt)
      : deployment_(deployment), rtt_(rtt) {}

  tl::expected<void, std::string> inject(const Descriptor& strategy,
                                         const loadgen::Fault& fault) override;
  tl::expected<void, std::string> heal(const Descriptor& strategy,
                                       const loadgen::Fault& fault) override;

  /// A fault could not be injected or healed. For after the runs.
  bool failed() const { return failed_; }

 private:
  template <class Work>
  tl::expected<void, std::string> attempt(const Descriptor& strategy, Work work);

  const deployment::Deployment& deployment_;
  const Duration rtt_;
  bool failed_ = false;
};

}  // namespace lockbench::cli
