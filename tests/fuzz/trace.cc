#include "loadgen/run/workload.h"

#include <sstream>
#include <string>
#include <vector>

#include "loadgen/run/demand.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

void read_trace(std::string_view bytes) {
  if (const auto hot = loadgen::HotSet::parse(bytes)) {
    require(loadgen::HotSet::parse(hot->to_string()).has_value());
  }
  std::istringstream lines{std::string(bytes)};
  const auto trace = loadgen::read_trace(lines, "trace");
  for (std::size_t i = 0; trace && i < trace->ends.size(); ++i) {
    const auto locks = trace->of(i);
    require(!locks.empty() && locks.size() <= loadgen::Trace::kMostLocks);
    for (const loadgen::Wanted& wanted : locks) {
      require(wanted.key >= 0 && wanted.key < loadgen::Trace::kMostKeys);
    }
  }
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(trace, lockbench::fuzz::read_trace)
