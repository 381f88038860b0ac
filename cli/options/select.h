#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options/options.h"
#include "strategies/descriptor.h"
#include "strategies/registry.h"

namespace lockbench::cli {

/// A strategy that is to run. What a glob brought in may be skipped; what was named must run.
struct Selected {
  const Descriptor* strategy = nullptr;
  bool named = false;
};

/// Resolves names and globs ("redis-*", "all"; none at all: all) in the order given, each strategy
/// once.
tl::expected<std::vector<Selected>, UsageError> select_strategies(
    const std::vector<std::string>& patterns, const std::vector<const Descriptor*>& catalogue);

/// Refuses a way to wait that a named strategy does not offer. The others keep their own.
tl::expected<void, UsageError> check_waiting(const std::vector<Selected>& selected,
                                             const std::optional<WaitPolicy>& wait);

/// The same for --renew: a strategy that was named must be one that a timer can renew, and in time.
tl::expected<void, UsageError> check_renewal(const std::vector<Selected>& selected,
                                             const std::optional<RenewPolicy>& renew, Duration ttl);

/// The strategies that the options name, among those that are built and those that are left out;
/// they can do what the options ask of them.
tl::expected<std::vector<Selected>, UsageError> select_for_load(
    const RunOptions& options, std::vector<const Descriptor*> built = all_strategies());

}  // namespace lockbench::cli
