#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "cli/backends.h"
#include "cli/servers.h"

namespace lockbench {

using Begun = std::future<tl::expected<std::unique_ptr<testbed::Server>, std::string>>;
using BegunGroup = std::future<tl::expected<std::unique_ptr<testbed::RedisGroup>, std::string>>;

/// Starts the private servers of one run side by side, and draws lines to them. For one thread; it
/// and the deployment outlive what has been begun.
class Starter {
 public:
  Starter(const RunOptions& options, Deployment& deployment);

  Begun begin(const Backend& backend);
  BegunGroup begin_group();

  /// The port of what was begun; of a group its primary's.
  tl::expected<std::uint16_t, std::string> finish(Begun& begun);
  tl::expected<std::uint16_t, std::string> finish(BegunGroup& begun);

  /// The port of a line as long as --rtt asks for to the server on that port; the server's own if
  /// it does not.
  tl::expected<std::uint16_t, std::string> line_to(std::uint16_t port);

 private:
  void start_testbed();

  Deployment& deployment_;
  const Duration rtt_;
  const int replicas_;
  const std::uint32_t connections_;
  std::string failure_;
};

}  // namespace lockbench
