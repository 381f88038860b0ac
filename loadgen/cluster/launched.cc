#include <cstdlib>

#include "loadgen/cluster/peers.h"
#include "strategies/number.h"

namespace lockbench::loadgen::cluster {
namespace {

std::optional<int> number_in(const char* name) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? std::nullopt : parse_number<int>(text);
}

}  // namespace

std::optional<Launched> launched() {
  struct Names {
    const char *rank, *size;
  };
  // Slurm says how many tasks a step has; PMIx alone tells the rank.
  for (const Names& names : {Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                             Names{"PMIX_RANK", "SLURM_STEP_NUM_TASKS"}}) {
    const auto rank = number_in(names.rank), size = number_in(names.size);
    if (rank && size && *rank >= 0 && *rank < *size) return Launched{*rank, *size};
  }
  return std::nullopt;
}

}  // namespace lockbench::loadgen::cluster
