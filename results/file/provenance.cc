#include "results/file/provenance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "results/file/option_values.h"
#include "results/tables/units.h"

namespace lockbench::results {

std::string load_of(const Result& result) {
  std::vector<std::string> words;
  const auto count = [&](const std::string& key, std::string_view what) {
    if (const auto value = workload_number(result, key)) {
      words.push_back(fmt::format("{} {}{}", human_count(*value), what, *value == 1 ? "" : "s"));
    }
  };
  count("clients", "client");
  count("keys", "key");
  if (!workload_text(result, "keys").empty())
    words.push_back("keys: " + workload_text(result, "keys"));
  if (const auto hold = workload_number(result, "hold")) {
    words.push_back(*hold > 0 ? human_seconds(*hold) + " of work" : "no work inside");
  } else if (!workload_text(result, "hold").empty()) {
    words.push_back(workload_text(result, "hold") + " of work");
  }
  if (const auto rate = workload_number(result, "rate")) {
    words.push_back(human_number(*rate) + " sections/s asked for");
  }
  return words.empty() ? "a load that is not said" : fmt::format("{}", fmt::join(words, ", "));
}

std::string origin_of(const Result& result) {
  const Environment& machine = result.environment;
  std::vector<std::string> words;
  if (machine.cores > 0) words.push_back(fmt::format("{} × {}", machine.cores, machine.cpu));
  for (const auto& [name, server] : machine.servers) {
    words.push_back(fmt::format("{} {}", name, server.version));
  }
  words.push_back(fmt::format("lockbench {} ({}, {})", result.lockbench.version,
                              result.lockbench.commit, result.lockbench.build_type));
  words.push_back(result.started_at.substr(0, 10));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace lockbench::results
