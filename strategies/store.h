#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/descriptor.h"

namespace lockbench {

struct StoreFacts {
  std::string version;
  /// Changes when the server restarts.
  std::string instance;
  /// User and system CPU of the server process since its start; nothing where it does not tell.
  std::optional<double> cpu_seconds;
  int replicas = 0;  ///< that are connected to it
};

/// One server of a deployment, for the housekeeping round a run: not a lock. Not thread-safe.
class Store {
 public:
  virtual ~Store() = default;
  /// As shown to people: never with credentials.
  virtual std::string display() const = 0;
  /// Makes sure that it is a server of its kind and lets us in. A stop ends the wait for it.
  virtual StoreResult<void> reach(const std::stop_token& stop) = 0;
  virtual StoreResult<StoreFacts> facts() = 0;
  /// Removes exactly these keys; returns how many were there.
  virtual StoreResult<std::size_t> remove_keys(std::span<const std::string> keys) = 0;
  /// Removes what the locks of a run share besides their keys, such as a schema. Called when none
  /// of them is in use any more; some of it, or all, may have gone before.
  virtual StoreResult<void> remove_run(std::string_view /*run_id*/) { return {}; }
};

/// How to deal with a backend's servers.
struct StoreKind {
  using Text = tl::expected<std::string, std::string>;
  /// A URL as shown to people and files, without its secrets; the error says what is wrong with it,
  /// and what is allowed, likewise.
  Text (*display)(const std::string& url);
  /// For a URL that `display` accepts. Does not connect.
  std::unique_ptr<Store> (*make)(const std::string& url, Duration command_timeout);
};

/// Stands beside the backend: const StoreRegistration registration("redis", {display, make});
class StoreRegistration {
 public:
  StoreRegistration(std::string_view backend, const StoreKind& kind);
};

/// Null for a backend without servers, or one that this build leaves out.
const StoreKind* find_store_kind(std::string_view backend);

/// The servers that a strategy uses: the first endpoint, or all for a quorum; none for a backend
/// without servers.
std::vector<std::unique_ptr<Store>> make_stores(const Descriptor& strategy,
                                                const Endpoints& endpoints,
                                                Duration command_timeout);

}  // namespace lockbench
