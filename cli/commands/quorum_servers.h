#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "deployment/deployment.h"
#include "loadgen/experiments/quorum_experiment.h"

namespace lockbench::cli {

/// Private Redis servers for the quorum experiment: independent nodes, with a line to each, and a
/// primary with replicas.
class QuorumServers : public loadgen::QuorumNodes {
 public:
  /// Starts request.nodes of them. `slow`: what slow nodes take longer. The error says what is
  /// missing.
  static tl::expected<std::unique_ptr<QuorumServers>, std::string> start(
      const deployment::Request& request, Duration slow);

  Endpoints endpoints(const results::Nodes& nodes) override;
  tl::expected<void, std::string> inject(const results::Nodes& nodes) override;
  tl::expected<void, std::string> heal() override;
  /// A server that no fault strikes.
  std::string counter_url() const { return replicated_->servers().front()->url(); }

  /// Of all servers, for the result file. A stop ends the wait for them.
  tl::expected<std::map<std::string, results::Server>, std::string> facts(
      Duration timeout, const std::stop_token& stop) const;

 private:
  QuorumServers(Duration rtt, Duration slow) : rtt_(rtt), slow_(slow) {}

  const Duration rtt_, slow_;
  std::unique_ptr<deployment::LocalHost> host_;  ///< outlives its stores
  std::unique_ptr<deployment::PrivateStore> nodes_, replicated_;
};

}  // namespace lockbench::cli
