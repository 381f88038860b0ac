#include "cli/options/load_options.h"
#include "loadgen/cluster/peers.h"

namespace lockbench::cli {

void LoadOptions::complete_ranks(const OptionList& options) {
  const auto launched = loadgen::cluster::launched();
  const int size = launched ? launched->size : 1;
  if (size < 2) return;
  constexpr int kHighestPort = 65'535;
  if (metrics.listen && metrics.listen->port + size - 1 > kHighestPort) {
    throw UsageError("--metrics-listen needs a port of at most {}: that of each rank is one higher",
                     kHighestPort - size + 1);
  }
  if (options.given("resource") && workload.resource == loadgen::Resource::memory) {
    throw UsageError("--resource memory cannot be shared by {} ranks; allowed: redis, redis-fenced",
                     size);
  }
  if (workload.resource == loadgen::Resource::memory) workload.resource = loadgen::Resource::redis;
}

}  // namespace lockbench::cli
