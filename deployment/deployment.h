#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "deployment/private_store.h"
#include "results/file/model.h"
#include "strategies/descriptor.h"

namespace lockbench::deployment {

/// Stands for a version that the server's user has no permission to read.
inline constexpr std::string_view kUnknownVersion = "unknown";

/// Members of a private cluster: three survive the loss of one.
inline constexpr int kClusterMembers = 3;

/// Requirements on the servers of a load.
struct Request {
  /// URLs of the user's own servers by store, secrets included; for other stores, private servers
  /// are started.
  std::map<std::string, std::vector<std::string>, std::less<>> given;
  bool counter = false;  ///< the protected counter lives in a Redis
  std::optional<std::string> given_counter;
  int clients = 1;
  int nodes = 5;                     ///< private servers for locks that live on a quorum
  int replicas = 2;                  ///< of a private primary, for locks that need replicas
  std::optional<int> wait_replicas;  ///< that a lock waits for; nothing if unknown
  Duration command_timeout = std::chrono::seconds(3);
  Duration rtt{};  ///< added between clients and private servers
  /// Added for clients that use the far endpoints; zero: there are none. Not with `rtt` or `lines`.
  Duration far_rtt{};
  bool lines = false;     ///< proxies in front of private servers, even if they add no delay
  bool clusters = false;  ///< private clusters, if the store supports them
  bool sharded = false;   ///< a private cluster whose servers share the keys, instead of one server
  bool failover = false;  ///< a replica must be there to take the place of a private primary
  bool tls = false;       ///< private servers speak TLS, and clients verify them

  std::vector<std::string> given_for(std::string_view store) const {
    const auto urls = given.find(store);
    return urls == given.end() ? std::vector<std::string>() : urls->second;
  }
};

/// The servers of one load: private ones that it owns, or the user's.
struct Deployment {
  std::unique_ptr<testbed::Testbed> host;  ///< outlives its stores
  /// Private ones, by the names of the endpoints or "counter".
  std::map<std::string, std::shared_ptr<PrivateStore>, std::less<>> stores;
  Endpoints endpoints;
  Endpoints far_endpoints;  ///< of the same private servers, with Request::far_rtt
  std::string counter_url;
  /// Of the servers, not of the proxies in front of them. No secrets.
  std::map<std::string, results::Server> facts;
  /// A line for each unreachable node of a quorum, and for each server whose facts the user has
  /// no permission to read.
  std::vector<std::string> warnings;

  /// Bytes through all proxies so far, both ways.
  std::uint64_t bytes_moved() const;
  /// CPU time so far of the private servers of this set; nothing if it has none, or if one of them
  /// has ended.
  std::optional<double> cpu_seconds_of(std::string_view set) const;
  /// Of all private servers, including ended ones.
  double cpu_seconds() const;
  /// Whether this strategy has private servers that get faster while they run.
  bool warms_up(const Descriptor& strategy) const;
};

/// Called with the reason if strategies cannot have servers. Its error ends the deployment.
using Drop = std::function<tl::expected<void, std::string>(
    const std::function<bool(const Descriptor&)>& concerns, std::string_view reason)>;

/// Checks what needs no server: that no node of a quorum is given twice, and that there can be as
/// many open files as the load needs; raises that limit. deploy() does it first.
tl::expected<void, std::string> check(const Request& request,
                                      const std::vector<const Descriptor*>& strategies);

/// Provides servers for these strategies and the counter; private ones start side by side. Raises
/// the limit of open files. An unusable given server is an error, but some nodes of a quorum may be
/// missing if only strategies on several nodes use them. Drops strategies whose private servers
/// cannot start, or that lack replicas. A stop ends the wait for a server, with or without an
/// error.
tl::expected<Deployment, std::string> deploy(const Request& request,
                                             const std::vector<const Descriptor*>& strategies,
                                             const Drop& drop, const std::stop_token& stop = {});

/// The most files that a load of these strategies has open at a time.
std::uint64_t open_files_for(const Request& request,
                             const std::vector<const Descriptor*>& strategies);

/// Whether strategies of this backend could run here on private servers; the error says what is
/// missing. Starts nothing.
tl::expected<void, std::string> can_serve(std::string_view backend);

/// Reaches the server at `url`, checks that it is of this backend and accepts our credentials, and
/// describes it. The error names the endpoint, never a secret.
tl::expected<results::Server, std::string> ask_server(std::string_view backend,
                                                      const std::string& url, Duration timeout,
                                                      const std::stop_token& stop = {});

}  // namespace lockbench::deployment
