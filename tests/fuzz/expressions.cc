#include <sstream>
#include <string>

#include "cli/options/option.h"
#include "loadgen/run/duration_distribution.h"
#include "loadgen/run/fault.h"
#include "results/stats/threshold.h"
#include "strategies/waiting/wait_policy.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

/// What was read is read again from how it is written.
void read_durations(std::string_view text) {
  if (const auto duration = parse_duration(text)) {
    require(parse_duration(format_duration(*duration)) == *duration);
  }
  if (const auto policy = parse_wait_policy(text)) {
    require(parse_wait_policy(to_string(*policy)) == *policy);
  }
  if (text.find("quantiles:") != std::string_view::npos) return;  // names a file
  if (const auto drawn = loadgen::DurationDistribution::parse(text)) {
    require(loadgen::DurationDistribution::parse(drawn->to_string()) == *drawn);
    Random random(1);
    require(drawn->draw(random) <= loadgen::DurationDistribution::kLongestDraw);
  }
}

void read_expressions(std::string_view bytes) {
  read_durations(bytes);
  std::istringstream lines{std::string(bytes)};
  static_cast<void>(loadgen::DurationDistribution::read_quantiles(lines, "file"));
  const std::string text(bytes);
  if (const auto fault = loadgen::parse_fault(text)) {
    require(loadgen::parse_fault(fault->to_string()).has_value());
  }
  static_cast<void>(results::parse_threshold(text));
  static_cast<void>(results::parse_regression(text));
  static_cast<void>(cli::whole_number(1, 100).parse(text));
  static_cast<void>(cli::number(0, 1).parse(text));
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(expressions, lockbench::fuzz::read_expressions)
