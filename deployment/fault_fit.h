#pragma once

#include <string>

#include "cli/options/options.h"
#include "strategies/descriptor.h"

namespace lockbench::cli {

/// Servers of a private store that is to lose one of them and go on.
inline constexpr int kClusterMembers = 3;

/// Why the servers of this strategy cannot have this fault; empty if they can.
std::string unfit(const loadgen::Fault& fault, const Descriptor& strategy,
                  const RunOptions& options);

/// Whether the private servers of this backend must be several that stand in for each other.
bool needs_cluster(const RunOptions& options, std::string_view backend);
/// Whether some fault is one of the way to the servers.
bool strikes_lines(const RunOptions& options);
/// Whether some fault is that a server is replaced by another.
bool fails_over(const RunOptions& options);

}  // namespace lockbench::cli
