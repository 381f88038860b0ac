#pragma once

#include <functional>

#include "loadgen/cluster/link.h"
#include "loadgen/cluster/order.h"
#include "loadgen/cluster/part.h"

namespace lockbench::loadgen::cluster {

/// What a rank above 0 has beside what it is told.
struct MemberSettings {
  Hello hello;
  EnvFactory make_env = make_system_env;
  std::function<void(Services&)> provide_services{};
  /// Who is told of a run, for metrics of this rank; null: nobody. May be empty.
  std::function<RunWatcher*(const Order&)> watcher_of{};
  std::function<MachineReading()> machine = read_machine;
};

/// Serves rank 0 with the clients of this rank: says hello, and does what it orders until it says
/// that there are no more runs, the link's stop comes, or it has not been heard of for long.
/// Blocks. Prints nothing. A stop ends the run under way: what was recorded is saved and told
/// within half a second. Returns whether all ranks leave together.
bool serve(Link& link, const MemberSettings& settings);

}  // namespace lockbench::loadgen::cluster
