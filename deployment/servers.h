#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options/options.h"
#include "cli/options/select.h"
#include "results/file/model.h"
#include "testbed/proxy/proxy.h"
#include "testbed/servers/redis_group.h"
#include "testbed/servers/server.h"
#include "testbed/servers/testbed.h"

namespace lockbench::cli {

/// The version of a server that reveals none: whoever may lock need not be allowed to ask.
inline constexpr std::string_view kUnknownVersion = "unknown";

/// Private servers that locks live on, and what lies before them.
struct Site {
  bool cluster = false;  ///< its servers are one store together
  std::vector<testbed::Server*> servers;
  testbed::RedisGroup* group = nullptr;  ///< theirs, if there are replicas
  std::vector<testbed::Proxy*> lines;    ///< one for each server, or none
};

/// The servers of one run: private ones that it owns, or the user's.
struct Deployment {
  std::unique_ptr<testbed::Testbed> testbed;  ///< outlives its servers
  std::vector<std::shared_ptr<testbed::Server>> own;
  std::shared_ptr<testbed::RedisGroup> replicated;  ///< for strategies that need replicas
  std::unique_ptr<testbed::ProxyPool> proxies;
  std::vector<std::unique_ptr<testbed::Proxy>> lines;  ///< before own servers, for --rtt and faults
  std::map<std::string, Site, std::less<>> sites;      ///< of own servers, named as the endpoints
  Endpoints endpoints;
  std::string counter_url;
  /// No secrets. Of servers themselves, not of the proxies in front of them.
  std::map<std::string, results::Server> facts;
  /// What the user should know: a line for each of a quorum's servers that cannot be
  /// reached, and for each that does not tell of itself.
  std::vector<std::string> warnings;
};

/// How many files its clients may have open at once, all else included; each has so many to a
/// store, and with lines even where --rtt asks for none, both ends of each in the proxy.
std::uint64_t open_files_for(const loadgen::Workload& workload, int files = 1, bool lines = false);

/// Whether strategies of this backend could run here without servers given; the error says what is
/// missing. Starts nothing.
tl::expected<void, std::string> can_serve(std::string_view backend);

/// Reaches the backend's server at `url`, makes sure that it is one and lets us in, and says what
/// it is; the error names the endpoint, never a secret.
tl::expected<results::Server, std::string> ask_server(std::string_view backend,
                                                      const std::string& url, Duration timeout,
                                                      const std::stop_token& stop = {});

/// Servers for the selected strategies and the counter, all private ones started side by side;
/// several where a lock lives on a quorum of them, or where faults want it. A server that was given
/// and cannot be used is an error, but for those of a quorum: there only one that nobody else uses
/// may be missing, and not all. Where a private one cannot be had, the strategies that need it move
/// from `selected` to `skipped`, and so do those that this build leaves out, that have no shared
/// mode if one is asked for, or whose servers cannot have a fault; if they were named it is an
/// error, and so is having nothing left to run. A stop ends the wait for a server, with an error or
/// without.
tl::expected<Deployment, UsageError> deploy(const RunOptions& options,
                                            std::vector<Selected>& selected,
                                            std::vector<results::Skipped>& skipped,
                                            const std::stop_token& stop = {});

}  // namespace lockbench::cli
