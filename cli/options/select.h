#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/load_options.h"
#include "strategies/descriptor.h"
#include "strategies/registry.h"

namespace lockbench::cli {

/// A strategy to run. One that was named must run; one that a glob matched may be skipped.
struct Selected {
  const Descriptor* strategy = nullptr;
  bool named = false;
};

/// Whether a pattern, which is a name, a glob or "all", means this name.
bool matches(const std::string& pattern, std::string_view name);

/// And the strategies that this build leaves out.
std::vector<const Descriptor*> with_absent(std::vector<const Descriptor*> built = all_strategies());

/// The strategies of these names and globs ("redis-*", "all"; none: all), in this order, each once.
std::vector<Selected> select_strategies(const std::vector<std::string>& patterns,
                                        const std::vector<const Descriptor*>& catalogue);

/// --wait: refused if a named strategy does not support the policy. The others keep their own.
void check_waiting(const std::vector<Selected>& selected, const std::optional<WaitPolicy>& wait);

/// --renew: refused if a named strategy cannot be renewed by a timer, or if the interval is not
/// shorter than the TTL.
void check_renewal(const std::vector<Selected>& selected, const std::optional<RenewPolicy>& renew,
                   Duration ttl);

/// The strategies to put under load, checked against --wait and --renew. `built` are those of this
/// build to choose from; the strategies that it leaves out are added.
std::vector<Selected> select_for_load(const LoadOptions& options,
                                      std::vector<const Descriptor*> built = all_strategies());

}  // namespace lockbench::cli
