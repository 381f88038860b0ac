#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options.h"
#include "strategies/descriptor.h"

namespace lockbench {

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

}  // namespace lockbench
