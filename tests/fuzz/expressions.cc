#include <sstream>
#include <string>

#include "cli/options/option.h"
#include "exporter/http_endpoint.h"
#include "loadgen/run/demand.h"
#include "loadgen/run/duration_distribution.h"
#include "loadgen/run/fault.h"
#include "loadgen/run/workload.h"
#include "results/stats/threshold.h"
#include "strategies/store.h"
#include "strategies/url.h"
#include "strategies/waiting/wait_policy.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

/// Reads a duration, writes it, and reads it again.
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

void read_trace(const std::string& bytes) {
  std::istringstream lines(bytes);
  const auto trace = loadgen::read_trace(lines, "trace");
  for (std::size_t i = 0; trace && i < trace->ends.size(); ++i) {
    const auto locks = trace->of(i);
    require(!locks.empty() && locks.size() <= loadgen::Trace::kMostLocks);
    for (const loadgen::Wanted& wanted : locks) {
      require(wanted.key >= 0 && wanted.key < loadgen::Trace::kMostKeys);
    }
  }
}

void read_urls(const std::string& text) {
  for (const StoreKind* kind : store_kinds()) {
    if (!kind->not_built.empty()) continue;
    const auto shown = kind->display(text);
    if (!shown) {
      require(shown.error().find('\n') == std::string::npos);
      continue;
    }
    if (kind->secrecy != nullptr) static_cast<void>(kind->secrecy(text));
  }
  static_cast<void>(parse_tls_query(text));
  if (const auto address = exporter::parse_listen_address(text)) {
    require(exporter::parse_listen_address(address->to_string()).has_value());
  }
  require(cli::presentable(text).find('\n') == std::string::npos);
}

/// Everything that is parsed from option values.
void read_expressions(std::string_view bytes) {
  read_durations(bytes);
  std::istringstream lines{std::string(bytes)};
  static_cast<void>(loadgen::DurationDistribution::read_quantiles(lines, "file"));
  const std::string text(bytes);
  read_trace(text);
  read_urls(text);
  if (const auto hot = loadgen::HotSet::parse(bytes)) {
    require(loadgen::HotSet::parse(hot->to_string()).has_value());
  }
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
