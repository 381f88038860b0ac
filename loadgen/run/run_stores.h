#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/store.h"

namespace lockbench::loadgen {

/// The servers of a run, apart from its locks: their CPU time, their restarts, and removing the
/// run's keys. For one thread at a time.
class RunStores {
 public:
  explicit RunStores(std::vector<std::unique_ptr<Store>> stores) : stores_(std::move(stores)) {}

  bool empty() const { return stores_.empty(); }

  /// Reads the servers' figures when the load begins.
  void begin();

  struct Usage {
    std::optional<double> cpu_seconds;  ///< nothing if a server does not report it, or restarted
    std::vector<std::string> restarts;  ///< a line for each server that restarted
    std::vector<std::string> gone;      ///< a line for each server that no longer answers
  };
  /// The difference since begin().
  Usage end();

  /// Removes every key that `key_of` names, with each of the suffixes, from all servers.
  tl::expected<void, std::string> remove_keys(int keys,
                                              const std::function<std::string(int)>& key_of,
                                              const std::vector<std::string_view>& suffixes);
  /// Removes what the run's locks share in addition to their keys.
  tl::expected<void, std::string> remove_run(std::string_view run_id);

 private:
  std::vector<std::unique_ptr<Store>> stores_;
  std::vector<StoreResult<StoreFacts>> at_begin_;
};

}  // namespace lockbench::loadgen
