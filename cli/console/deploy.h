#pragma once

#include <stop_token>

#include "cli/options/load_options.h"
#include "deployment/deployment.h"
#include "loadgen/run/fault.h"
#include "loadgen/run/runner.h"
#include "strategies/descriptor.h"
#include "strategies/registry.h"

namespace lockbench::cli {

// The strategies of a load, and its servers.

/// A strategy to run. One that was named must run; one that a glob matched may be skipped.
struct Selected {
  const Descriptor* strategy = nullptr;
  bool named = false;
};

/// `built` and the strategies that this build leaves out.
std::vector<const Descriptor*> with_absent(std::vector<const Descriptor*> built = all_strategies());

/// The strategies that match these names and globs ("redis-*", "all"; none: all), in this order,
/// each once.
std::vector<Selected> select_strategies(const std::vector<std::string>& patterns,
                                        const std::vector<const Descriptor*>& catalogue);

/// The strategies to put under load, checked against --wait and --renew. `built` are those of this
/// build to choose from; the strategies that it leaves out are added.
std::vector<Selected> select_for_load(const LoadOptions& options,
                                      std::vector<const Descriptor*> built = all_strategies());

/// The servers that the options ask for.
deployment::Request request_of(const LoadOptions& options);

/// Why the servers of this strategy cannot have this fault; empty if they can.
std::string unfit(const loadgen::Fault& fault, const Descriptor& strategy,
                  const LoadOptions& options);

/// Provides servers for the selected strategies and the counter. A strategy moves from `selected`
/// to `skipped` if this build leaves it out, if it lacks a shared mode that is asked for, if its
/// servers cannot have a fault, or if there are no servers for it. It is an error if such a
/// strategy was named, or if none is left. A stop ends the wait for a server, with or without an
/// error.
tl::expected<deployment::Deployment, std::string> deploy(const LoadOptions& options,
                                                         std::vector<Selected>& selected,
                                                         std::vector<results::Skipped>& skipped,
                                                         const std::stop_token& stop = {});

/// A plan of runs on these servers, which must outlive it. The caller sets the workload and the
/// rest.
loadgen::RunPlan plan_on(const deployment::Deployment& servers, const std::string& run_id);

/// Injects the faults of a run into the private servers of a deployment, and the lines to them.
class FaultServers : public loadgen::FaultTarget {
 public:
  /// `rtt`: delay that the lines add to a round trip. The deployment outlives it.
  FaultServers(const deployment::Deployment& deployment, Duration rtt)
      : deployment_(deployment), rtt_(rtt) {}

  tl::expected<void, std::string> inject(const Descriptor& strategy,
                                         const loadgen::Fault& fault) override {
    return change(strategy, fault, false);
  }
  tl::expected<void, std::string> heal(const Descriptor& strategy,
                                       const loadgen::Fault& fault) override {
    return change(strategy, fault, true);
  }

  /// Whether a fault could not be injected or healed. Call after the runs.
  bool failed() const { return failed_; }

 private:
  tl::expected<void, std::string> change(const Descriptor& strategy, const loadgen::Fault& fault,
                                         bool heals);

  const deployment::Deployment& deployment_;
  const Duration rtt_;
  bool failed_ = false;
};

}  // namespace lockbench::cli
