#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tl/expected.hpp>

#include "deployment/private_store.h"
#include "strategies/descriptor.h"

namespace lockbench::hazards {

using deployment::Limit;
using deployment::NotStarted;
using deployment::PrivateStore;
using deployment::Setup;

/// What all plays of a matrix share: servers that plays leave alone, the protected counter's
/// server, and the program that clients run. Thread-safe.
class ServerPool {
 public:
  struct Options {
    std::filesystem::path client_program{};  ///< understands `client`; empty: this program
    bool tls = false;                        ///< servers speak TLS, and clients verify them
  };

  static tl::expected<std::unique_ptr<ServerPool>, std::string> open(Options options);

  /// Servers for plays of this strategy. Shared ones are started when first asked for.
  tl::expected<std::shared_ptr<PrivateStore>, NotStarted> store(const Descriptor& strategy,
                                                                Setup setup);
  /// A Redis that no fault touches.
  const std::string& counter_url() const { return counter_url_; }
  const std::filesystem::path& client_program() const { return client_program_; }
  std::unique_ptr<testbed::Proxy> line_to(std::uint16_t port) { return host_->line_to(port); }

 private:
  ServerPool() = default;

  std::filesystem::path client_program_;
  std::unique_ptr<deployment::LocalHost> host_;  ///< outlives its servers
  std::unique_ptr<PrivateStore> counter_;
  std::string counter_url_;
  std::mutex mutex_;
  /// By the kind of servers. What could not be started is not tried again.
  std::map<std::string, tl::expected<std::shared_ptr<PrivateStore>, NotStarted>, std::less<>>
      shared_;
};

}  // namespace lockbench::hazards
