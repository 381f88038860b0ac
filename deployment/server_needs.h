#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options/select.h"
#include "deployment/backends.h"
#include "deployment/starter.h"

namespace lockbench::cli {

/// One need for servers: a backend's, or the counter's.
struct Need {
  const Backend* backend = nullptr;
  bool counter = false;
  bool quorum = false;      ///< a lock lives on all of them
  bool first_only = true;   ///< some lock lives on the first
  bool replicated = false;  ///< it must have replicas
  bool cluster = false;     ///< it must be several servers that are one store together
  bool lines = false;       ///< there must be something between clients and servers
  /// Locks that could do without its replicas live on it as well.
  bool for_all = false;
  std::vector<std::string> given;
  std::vector<Begun> begun{};
  BegunCluster begun_cluster{};
  BegunGroup begun_group{};

  /// In the endpoints.
  std::string set() const { return std::string(backend->name) + (replicated ? "-replicated" : ""); }
  bool concerns(const Descriptor& strategy) const {
    if (counter || strategy.backend != backend->name) return false;
    return for_all || server_set(strategy) == set();
  }
};

/// Of the selected strategies, and of the counter.
std::vector<Need> needs_of(const RunOptions& options, const std::vector<Selected>& selected);

/// The same server twice would vote against itself.
tl::expected<void, UsageError> check_distinct(const Need& need);

/// That a client has open to one store.
int most_files(const RunOptions& options, const std::vector<Need>& wanted);

}  // namespace lockbench::cli
