#pragma once

#include <map>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options.h"
#include "cli/select.h"
#include "results/model.h"
#include "testbed/redis_server.h"
#include "testbed/testbed.h"

namespace lockbench {

/// The servers of one run: private ones that it owns, or the user's.
struct Deployment {
  std::unique_ptr<testbed::Testbed> testbed;  ///< outlives its servers
  std::vector<std::unique_ptr<testbed::RedisServer>> own;
  Endpoints endpoints;
  std::string counter_url;
  std::map<std::string, results::Server> facts;  ///< no secrets
};

/// How many files so many clients may have open at once, all else included.
std::uint64_t open_files_for(int clients);

/// Whether strategies of this backend could run here without servers given; the error says what is
/// missing. Starts nothing.
tl::expected<void, std::string> can_serve(std::string_view backend);

/// Reaches the Redis at `url` and says what it is; the error names the endpoint, never a secret.
tl::expected<results::Server, std::string> ask_redis(const std::string& url, Duration timeout);

/// Servers for the selected strategies and the counter. Strategies that cannot run here move from
/// `selected` to `skipped`; if they were named it is an error, and so is having nothing left to
/// run.
tl::expected<Deployment, UsageError> deploy(const RunOptions& options,
                                            std::vector<Selected>& selected,
                                            std::vector<results::Skipped>& skipped);

}  // namespace lockbench
