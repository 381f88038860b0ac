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
  /// User and system CPU of the server process since its start; nothing where the server has no
  /// such figure.
  std::optional<double> cpu_seconds;
  int replicas = 0;  ///< connected to it
};

/// One server, for what is done before and after a run: reach it, describe it, remove keys. Not a
/// lock. Not thread-safe.
class Store {
 public:
  virtual ~Store() = default;
  /// As shown to people: never with credentials.
  virtual std::string display() const = 0;
  /// Checks that it is a server of this kind and accepts our credentials. A stop ends the wait.
  virtual StoreResult<void> reach(const std::stop_token& stop) = 0;
  virtual StoreResult<StoreFacts> facts() = 0;
  /// Removes exactly these keys; returns how many existed.
  virtual StoreResult<std::size_t> remove_keys(std::span<const std::string> keys) = 0;
  /// Removes what the locks of a run share besides their keys, such as a schema. Called when none
  /// of them is in use any more; it may have been removed before.
  virtual StoreResult<void> remove_run(std::string_view /*run_id*/) { return {}; }
};

/// A kind of store: what it is called, how its servers are given on the command line, and how they
/// are reached. Stands beside its store:
///   const StoreRegistration registration({.name = "redis", ...});
struct StoreKind {
  using Text = tl::expected<std::string, std::string>;
  std::string_view name;        ///< as in descriptors; the user's own servers are given with --NAME
  std::string_view value_name;  ///< of that option, in its help: "URL"
  std::string_view help;        ///< of that option, with the form that its value has
  bool repeatable = false;      ///< several servers may be given, each with an option of its own
  /// Why this build is without it: then all the rest is missing. Empty if it is there.
  std::string_view not_built = {};
  /// A URL as shown to people and files, without its secrets; the error says what is wrong with it,
  /// and what is allowed, likewise.
  Text (*display)(const std::string& url) = nullptr;
  /// For a URL that `display` accepts. Does not connect.
  std::unique_ptr<Store> (*make)(const std::string& url, Duration command_timeout) = nullptr;
};

class StoreRegistration {
 public:
  explicit StoreRegistration(const StoreKind& kind);
};

/// By name; those that this build leaves out as well.
std::vector<const StoreKind*> store_kinds();
/// Null for a backend without servers, or one that this build leaves out.
const StoreKind* find_store_kind(std::string_view backend);

/// The servers that a strategy uses: the first endpoint, or all for a quorum; none for a backend
/// without servers.
std::vector<std::unique_ptr<Store>> make_stores(const Descriptor& strategy,
                                                const Endpoints& endpoints,
                                                Duration command_timeout);

}  // namespace lockbench
