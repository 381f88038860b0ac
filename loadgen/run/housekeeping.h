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

/// A run's servers from the outside: what they spent, whether they stayed the same, and tidying up.
/// One thread at a time.
class Housekeeping {
 public:
  explicit Housekeeping(std::vector<std::unique_ptr<Store>> stores) : stores_(std::move(stores)) {}

  bool has_store() const { return !stores_.empty(); }

  /// Looks at the servers when the load begins.
  void begin();

  struct Account {
    std::optional<double> cpu_seconds;  ///< nothing where a server does not tell
    std::vector<std::string> restarts;  ///< a line for each server that restarted
    std::vector<std::string> gone;      ///< and for each that does not answer any more
  };
  /// What has happened since then.
  Account end();

  /// Removes every key that `key_of` names, with each of the suffixes, from all servers.
  tl::expected<void, std::string> remove_keys(int keys,
                                              const std::function<std::string(int)>& key_of,
                                              const std::vector<std::string_view>& suffixes);
  /// Removes what the run's locks share besides their keys.
  tl::expected<void, std::string> remove_run(std::string_view run_id);

 private:
  std::vector<std::unique_ptr<Store>> stores_;
  std::vector<StoreResult<StoreFacts>> at_begin_;
};

}  // namespace lockbench::loadgen
