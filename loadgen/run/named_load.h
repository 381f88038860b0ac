#pragma once

#include <string_view>
#include <vector>

#include "loadgen/run/workload.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

/// Loads with names: what a user wants to know, rather than how it is measured.
enum class NamedLoad {
  alone,      ///< one client, on loopback and with a network: what a section costs
  demand,     ///< open loop below the capacity of a key: what a client waits
  saturated,  ///< closed loop that never leaves the lock free: who is served, and who starves
  reacquire,  ///< closed loop without work: mostly one client that retakes its own lock
};
std::string_view to_string(NamedLoad load);

/// What the user decided, in place of the load.
struct Decided {
  bool clients = false, hold = false, rate = false, rtt = false;
};

/// The workloads that make up a load, of which some differ in the round-trip time. `given` says
/// what the load does not decide.
std::vector<Workload> points_of(NamedLoad load, const Workload& given, const Decided& decided);

/// As a result describes it.
results::Load load_of(const Workload& workload);

/// The share of all sections that want the key that is wanted most. Of several locks of a section
/// it is exact if all keys are drawn alike, and otherwise an upper bound.
double busiest_key_share(const Workload& workload);

}  // namespace lockbench::loadgen
