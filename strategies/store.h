#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/descriptor.h"

namespace lockbench {

struct StoreFacts {
  std::string version;
  /// Changes when the server restarts.
  std::string instance;
  /// User and system CPU of the server process since its start.
  double cpu_seconds = 0;
};

/// One server of a deployment, for the housekeeping round a run: not a lock. Not thread-safe.
class Store {
 public:
  virtual ~Store() = default;
  /// As shown to people: never with credentials.
  virtual std::string display() const = 0;
  virtual StoreResult<StoreFacts> facts() = 0;
  /// Removes exactly these keys; returns how many were there.
  virtual StoreResult<std::size_t> remove_keys(std::span<const std::string> keys) = 0;
};

/// Makes a backend's Store from a URL that has been checked already. Stands beside the backend:
///   const StoreRegistration registration("redis", make);
class StoreRegistration {
 public:
  using Make = std::unique_ptr<Store> (*)(const std::string& url, Duration command_timeout);
  StoreRegistration(std::string_view backend, Make make);
};

/// The servers that a strategy uses: the first endpoint, or all for a quorum; none for a backend
/// without servers.
std::vector<std::unique_ptr<Store>> make_stores(const Descriptor& strategy,
                                                const Endpoints& endpoints,
                                                Duration command_timeout);

}  // namespace lockbench
