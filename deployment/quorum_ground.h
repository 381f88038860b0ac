#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options/options.h"
#include "loadgen/experiments/quorum_experiment.h"
#include "testbed/proxy/proxy.h"
#include "testbed/servers/redis_group.h"
#include "testbed/servers/redis_server.h"
#include "testbed/servers/testbed.h"

namespace lockbench::cli {

/// Private servers on this machine: independent nodes, with a line to each, and a primary with
/// replicas.
class LocalQuorum : public loadgen::QuorumNodes {
 public:
  /// Starts `nodes` of them. The error says what is missing.
  static tl::expected<std::unique_ptr<LocalQuorum>, std::string> start(const RunOptions& options,
                                                                       int nodes);

  Endpoints endpoints(int nodes, const loadgen::QuorumFault& fault) override;
  tl::expected<void, std::string> inject(int nodes, const loadgen::QuorumFault& fault) override;
  tl::expected<void, std::string> heal() override;

  /// Of all servers, for the result file. A stop ends the wait for them.
  tl::expected<std::map<std::string, results::Server>, std::string> facts(
      Duration timeout, const std::stop_token& stop) const;

 private:
  struct Node {
    std::unique_ptr<testbed::RedisServer> server;
    std::unique_ptr<testbed::Proxy> line;
  };
  using Done = tl::expected<void, std::string>;

  explicit LocalQuorum(const RunOptions& options) : options_(options) {}
  Done start_servers(int nodes);
  Done start_lines();

  const RunOptions& options_;
  std::unique_ptr<testbed::Testbed> testbed_;  ///< outlives its servers
  std::unique_ptr<testbed::ProxyPool> pool_;
  std::vector<Node> nodes_;
  std::unique_ptr<testbed::RedisGroup> group_;
  std::unique_ptr<testbed::Proxy> group_line_;
};

}  // namespace lockbench::cli
