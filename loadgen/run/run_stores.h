#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/used_keys.h"
#include "strategies/store.h"

namespace lockbench::loadgen {

/// What the locks of a run may have left in its stores.
struct RunKeys {
  std::string_view run_id;
  const UsedKeys& used;
  std::function<std::string(int)> name_of;
  const std::vector<std::string_view>& suffixes;  ///< of each key
};

/// The servers of a run, apart from its locks: their CPU time, their restarts, and removing the
/// run's keys. For one thread at a time.
class RunStores {
 public:
  RunStores(std::vector<std::unique_ptr<Store>> stores, Listing listing)
      : stores_(std::move(stores)), listing_(listing) {}

  /// Reads the servers' figures when the load begins.
  void begin();

  struct Usage {
    std::optional<double> cpu_seconds;  ///< nothing if a server does not report it, or restarted
    std::vector<std::string> restarts;  ///< a line for each server that restarted
    std::vector<std::string> gone;      ///< a line for each server that no longer answers
  };
  /// The difference since begin().
  Usage end();

  /// Removes them from all servers: by the run's id where they stand together, otherwise the used
  /// ones by their names. A stop ends it after the batch under way.
  tl::expected<void, std::string> remove(const RunKeys& keys, const std::stop_token& stop);

 private:
  std::vector<std::unique_ptr<Store>> stores_;
  const Listing listing_;
  std::vector<StoreResult<StoreFacts>> at_begin_;
};

}  // namespace lockbench::loadgen
