#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "deployment/backends.h"
#include "deployment/servers.h"

namespace lockbench::cli {

using Begun = std::future<tl::expected<std::unique_ptr<testbed::Server>, std::string>>;
using BegunCluster =
    std::future<tl::expected<std::vector<std::shared_ptr<testbed::Server>>, std::string>>;
using BegunGroup = std::future<tl::expected<std::shared_ptr<testbed::RedisGroup>, std::string>>;

/// Starts the private servers of one run side by side, and draws lines to them. For one thread; it
/// and the deployment outlive what has been begun.
class Starter {
 public:
  Starter(const RunOptions& options, Deployment& deployment);

  Begun begin(const Backend& backend);
  BegunCluster begin_cluster(const Backend& backend);
  BegunGroup begin_group();

  /// Adds what was begun to the site; of a group its primary.
  tl::expected<void, std::string> finish(Begun& begun, Site& site);
  tl::expected<void, std::string> finish(BegunCluster& begun, Site& site);
  tl::expected<void, std::string> finish(BegunGroup& begun, Site& site);

  /// Draws a line as long as --rtt asks for to each of the site's servers.
  tl::expected<void, std::string> draw_lines(Site& site);

 private:
  void start_testbed();

  Deployment& deployment_;
  const Duration rtt_;
  const int replicas_;
  const std::uint32_t connections_;
  std::string failure_;
};

}  // namespace lockbench::cli
