#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/registry.h"
#include "strategies/url.h"

namespace lockbench {

/// How long a store keeps the data of a killed run at least: longer than anybody reads it, and than
/// two hosts' clocks differ. A later run on the same store removes it.
inline constexpr std::chrono::hours kKeptFor{24};

struct StoreFacts {
  std::string version;
  /// Changes when the server restarts.
  std::string instance;
  /// User and system CPU of the server process since its start; nothing if the server does not
  /// report it.
  std::optional<double> cpu_seconds{};
  /// Commands that the server has executed since its start, including those of scripts; nothing if
  /// it does not report them.
  std::optional<double> commands{};
  int replicas = 0;  ///< connected to it
};

/// One server, for the work before and after a run: reach it, describe it, remove keys. Not a lock.
/// Not thread-safe.
class Store {
 public:
  virtual ~Store() = default;
  /// As shown to people: never with credentials.
  virtual std::string display() const = 0;
  /// Checks that it is a server of this kind and accepts our credentials. A stop ends the wait.
  virtual StoreResult<void> reach(const std::stop_token& stop) = 0;
  virtual StoreResult<StoreFacts> facts() = 0;
  /// What locks need to know of the server's configuration, by its own names; what it does not tell
  /// is missing. Not during a run.
  virtual StoreResult<std::map<std::string, std::string>> settings() {
    return std::map<std::string, std::string>();
  }
  /// Those of these commands that the server does not have; with the version that has them, such as
  /// "Redis 3.0", if known.
  virtual StoreResult<std::map<std::string, std::string>> missing(
      std::span<const std::string> /*commands*/) {
    return std::map<std::string, std::string>();
  }
  /// Removes exactly these keys, in batches; returns how many existed. A stop ends it after the
  /// batch under way, with an error.
  virtual StoreResult<std::size_t> remove_keys(std::span<const std::string> keys,
                                               const std::stop_token& stop) = 0;
  /// For stores that find the keys of a run only by a scan. begin_keys(): notes in the store,
  /// before the first of them, that keys with this prefix are in use until about `until`.
  /// end_keys(): they are removed; forgets the note. remove_old_runs(): removes the keys of noted
  /// runs that were killed, kKeptFor after their end; takes about a second at most, and the next
  /// call goes on from there. Its error names one of them and what removes it.
  virtual StoreResult<void> begin_keys(std::string_view /*prefix*/, WallTime /*until*/,
                                       const std::stop_token& /*stop*/) {
    return {};
  }
  virtual StoreResult<void> end_keys(std::string_view /*prefix*/, const std::stop_token& /*stop*/) {
    return {};
  }
  virtual StoreResult<void> remove_old_runs(const std::stop_token& /*stop*/) { return {}; }
  /// Removes all keys lockbench:<run id>:... of this run and its parts, and objects that their
  /// locks share, such as a schema; nothing else. Returns how many there were. Not while the run is
  /// under way. Not called if the kind's Listing is `none`.
  virtual StoreResult<std::size_t> remove_run(std::string_view /*run_id*/,
                                              const std::stop_token& /*stop*/) {
    return 0;
  }
};

/// Whether it is the id of a run, "20261121T012530Z-4f3a9c", or of a run's part, with a number
/// appended: "20261121T012530Z-4f3a9c-2".
bool is_run_id(std::string_view text);
/// Whether `id` is this run, or one of its parts.
bool is_of_run(std::string_view id, std::string_view run_id);

/// The run of a key lockbench:<run id>:...; empty for other keys.
std::string_view run_of_key(std::string_view key);

/// The schema of all objects of a run in a database: "lockbench_20261121t012530z_4f3a9c". Letters,
/// digits and underscores only, so that it needs no quotes.
std::string schema_of_run(std::string_view run_id);
/// The schema for a key of the form lockbench:<run>:...; for other keys that of the run "".
inline std::string schema_of_key(std::string_view key) { return schema_of_run(run_of_key(key)); }

/// The error of a stopped remove_keys() or remove_run().
inline tl::unexpected<StoreError> removal_stopped(std::string_view display) {
  return failure_at(display, StoreError::Kind::not_sent, "stopped before the end");
}

/// Store::remove_keys() by `remove(batch)`, which returns how many of the batch existed.
template <class Remove>
StoreResult<std::size_t> remove_in_batches(std::span<const std::string> keys, std::size_t batch,
                                           std::string_view display, const std::stop_token& stop,
                                           const Remove& remove) {
  std::size_t removed = 0;
  while (!keys.empty()) {
    if (stop.stop_requested()) return removal_stopped(display);
    const auto some = keys.first(std::min(batch, keys.size()));
    keys = keys.subspan(some.size());
    const auto gone = remove(some);
    if (!gone) return tl::unexpected(gone.error());
    removed += static_cast<std::size_t>(*gone);
  }
  return removed;
}

/// How the keys of one run are found in a store.
enum class Listing {
  by_prefix,  ///< they are adjacent
  by_scan,    ///< only by scanning all keys of the server: only done after runs of client programs
  none,       ///< not at all
};

/// How connections to a URL's servers are kept secret.
struct Secrecy {
  std::string encryption;  ///< "TLS", "sslmode=verify-full"; empty: none
  /// What to change if a password may cross a network that others can read; empty: nothing.
  std::string advice;
};

/// For a URL whose scheme says whether its servers speak TLS; `secure` is the scheme with TLS.
Secrecy secrecy_by_scheme(const Url& url, std::string_view secure);
/// Whether it is this machine: a loopback address or a unix socket.
bool is_local(std::string_view host);

/// A kind of store: its name, its command-line option, and how to reach its servers. Stands beside
/// its store:
///   const StoreRegistration redis_store({.name = "redis", ...});
struct StoreKind {
  using Text = tl::expected<std::string, std::string>;
  std::string_view name;        ///< as in descriptors; the user's own servers are given with --NAME
  std::string_view value_name;  ///< of that option, in its help: "URL"
  std::string_view help;        ///< of that option, with the form of its value
  bool repeatable = false;      ///< several servers may be given, each with its own option
  Listing listing = Listing::by_prefix;
  /// Why this build lacks it; the other fields are then empty. Empty if it is built.
  std::string_view not_built = {};
  /// A URL as shown to people and files, without its secrets. The error says what is wrong with it
  /// and what is allowed, without secrets too.
  Text (*display)(const std::string& url) = nullptr;
  /// For a URL that `display` accepts. Null: never secret, and without passwords.
  Secrecy (*secrecy)(const std::string& url) = nullptr;
  /// For a URL that `display` accepts: whether each of its servers has a part of the keys. Null:
  /// never.
  bool (*is_sharded)(const std::string& url) = nullptr;
  /// The commands that a strategy sends, as Store::missing() takes them. Null: each server has all.
  std::vector<std::string> (*commands_of)(const Descriptor& strategy) = nullptr;
  /// For a URL that `display` accepts. Does not connect.
  std::unique_ptr<Store> (*make)(const std::string& url, Duration command_timeout) = nullptr;
  /// Takes the settings of its client library out of the environment, as they are for the user's
  /// servers and must not affect private ones; returns the names of those that were set. Call it
  /// before the first thread; later calls only repeat the names. Null: it reads none.
  std::vector<std::string> (*take_environment)() = nullptr;
  /// The user's URL, completed with the taken settings. Null: as it is.
  std::string (*complete)(const std::string& url) = nullptr;
};

using StoreRegistration = Named<StoreKind>;

/// For StoreKind::display and StoreKind::make: `kParse` reads a URL of the kind.
template <auto kParse>
StoreKind::Text display_of(const std::string& url) {
  return kParse(url).map([](const auto& endpoint) { return endpoint.display(); });
}
template <auto kParse, class ThisStore>
std::unique_ptr<Store> make_store(const std::string& url, Duration command_timeout) {
  return std::make_unique<ThisStore>(kParse(url).value(), command_timeout);
}

/// By name, including those that this build leaves out.
inline std::vector<const StoreKind*> store_kinds() { return StoreRegistration::all(); }
/// Null for a backend without servers, or one that this build leaves out.
const StoreKind* find_store_kind(std::string_view backend);

/// The servers that a strategy uses: the first endpoint, or all for a quorum; none for a backend
/// without servers.
std::vector<std::unique_ptr<Store>> make_stores(const Descriptor& strategy,
                                                const Endpoints& endpoints,
                                                Duration command_timeout);

}  // namespace lockbench
