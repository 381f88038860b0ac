#include "simulate/faults.h"

#include <sstream>
#include <string>

#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

/// The file of `simulate --faults`, and each of its lines as --pauses.
void read_faults(std::string_view bytes) {
  // These name further files, which may be devices.
  if (bytes.find("quantiles:") != std::string_view::npos) return;
  std::istringstream file{std::string(bytes)};
  const auto faults = simulate::Faults::read(file, "faults");
  require(faults || faults.error().find('\n') == std::string::npos);
  for (const simulate::RandomFault& fault : faults.value_or(simulate::Faults()).random) {
    require(fault.per_second > 0 && fault.share >= 0 && fault.share <= 1);
  }
  std::istringstream lines{std::string(bytes)};
  for (std::string line; std::getline(lines, line);) {
    if (const auto pauses = simulate::Pauses::parse(line)) {
      require(pauses->share <= 1 && pauses->per_second >= 0);
    }
  }
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(faults, lockbench::fuzz::read_faults)
