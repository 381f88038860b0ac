#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "strategies/etcd/client/connection.h"

namespace lockbench::etcd {

/// A change of a key: what it has now, or that it is gone.
struct Change {
  bool deleted = false;
  Entry entry;  ///< of a deleted key: the name, and the revision as `modified`
};

/// A stream of all changes of keys, in the order of their revisions. For one thread, that of the
/// connection, which must outlive it. After a failure it is closed.
class WatchStream {
 public:
  explicit WatchStream(Connection& connection);
  WatchStream(const WatchStream&) = delete;
  WatchStream& operator=(const WatchStream&) = delete;
  ~WatchStream();

  /// Of keys with one of these prefixes, from this revision on.
  StoreResult<void> open(const std::vector<std::string>& prefixes, std::int64_t from,
                         const std::stop_token& stop);
  /// The next changes; none if none come within `longest`, which should be short, as a stop does
  /// not end the wait.
  StoreResult<std::vector<Change>> next(Duration longest);
  void close() noexcept;

 private:
  struct Stream;

  /// Closes it. The error says why it has ended.
  tl::unexpected<StoreError> ended(const std::string& why);

  Connection& connection_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace lockbench::etcd
