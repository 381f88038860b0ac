#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/options/option.h"

namespace lockbench::cli {

std::vector<Option> fault_options() {
  Option option{.name = "fault", .value_name = "FAULT@TIME[+D]", .repeatable = true};
  option.help = fmt::format(
      "strikes TIME after the warm-up and is healed after D, or when the run ends; repeatable, one "
      "at a time: {}; node-kill:N, partition:SHARE, delay:D",
      fmt::join(loadgen::kFaults, ", "));
  option.set = [](RunOptions& options, const std::string& text) -> tl::expected<void, std::string> {
    auto fault = loadgen::parse_fault(text);
    if (!fault) return tl::unexpected(fault.error());
    options.faults.push_back(*std::move(fault));
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (options.faults.empty()) return nullptr;
    std::vector<std::string> texts;
    for (const loadgen::Fault& fault : options.faults) texts.push_back(fault.to_string());
    return texts;
  };
  return {option};
}

}  // namespace lockbench::cli
