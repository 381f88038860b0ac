#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "strategies/etcd/client/connection.h"

namespace lockbench::watch {

/// A key and what it has.
struct EtcdEntry {
  std::string name, value;
  std::int64_t created = 0;   ///< the revision in which it was created
  std::int64_t modified = 0;  ///< and last changed
  etcd::LeaseId lease = 0;
};

/// Keys in one revision of the store.
struct EtcdPage {
  std::int64_t revision = 0;
  std::vector<EtcdEntry> entries;  ///< by name
  bool more = false;               ///< keys of the range that come after these
};

struct EtcdLife {
  Duration left{}, granted{};  ///< in whole seconds
};

/// A change of a key: what it has now, or that it is gone.
struct EtcdChange {
  bool deleted = false;
  EtcdEntry entry;  ///< of a deleted key: the name, and the revision as `modified`
};

/// A connection that reads keys and leases, and a stream of all changes of keys.
class EtcdReader : public etcd::Connection {
 public:
  EtcdReader(etcd::Endpoint endpoint, const Timeouts& timeouts, Env& env);
  EtcdReader(const EtcdReader&) = delete;
  EtcdReader& operator=(const EtcdReader&) = delete;
  ~EtcdReader();

  /// The keys from this one on that have the prefix, at most `limit`, in that revision; 0: the
  /// latest.
  StoreResult<EtcdPage> read(const std::string& prefix, const std::string& from, std::int64_t limit,
                             std::int64_t revision, const std::stop_token& stop = {});
  /// Nothing: there is no such lease any more.
  StoreResult<std::optional<EtcdLife>> life_of(etcd::LeaseId lease,
                                               const std::stop_token& stop = {});

  /// Begins a stream of the changes of keys with one of these prefixes, from this revision on.
  StoreResult<void> watch(const std::vector<std::string>& prefixes, std::int64_t from,
                          const std::stop_token& stop);
  /// The next changes, in the order of their revisions; none if none come within `longest`, which
  /// should be short, as a stop does not end the wait. A failure ends the stream.
  StoreResult<std::vector<EtcdChange>> next(Duration longest);

 private:
  struct Changes;

  /// Closes the stream. The error says why it has ended.
  tl::unexpected<StoreError> ended(const std::string& why);

  std::unique_ptr<Changes> changes_;  ///< null: no stream is open
};

}  // namespace lockbench::watch
