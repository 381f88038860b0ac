#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "cli/commands/hazards.h"
#include "cli/options/select.h"
#include "cli/options/text.h"
#include "strategies/registry.h"

namespace lockbench::cli {

using hazards::Scenario;

tl::expected<std::vector<const Scenario*>, UsageError> select_scenarios(
    const std::vector<std::string>& patterns, bool quick) {
  const auto all = hazards::all_scenarios();
  std::vector<const Scenario*> selected;
  for (const std::string& pattern : patterns.empty() ? std::vector<std::string>{"*"} : patterns) {
    const std::string glob = pattern == "all" ? "*" : pattern;
    bool found = false;
    for (const Scenario* scenario : all) {
      if (fnmatch(glob.c_str(), std::string(scenario->name).c_str(), 0) != 0) continue;
      found = true;
      const bool there = std::find(selected.begin(), selected.end(), scenario) != selected.end();
      if (!there && (scenario->quick || !quick)) selected.push_back(scenario);
    }
    if (found) continue;
    std::vector<std::string_view> names;
    names.reserve(all.size());
    for (const Scenario* scenario : all) names.push_back(scenario->name);
    return tl::unexpected(
        UsageError{fmt::format("no such scenario \"{}\"{} (lockbench hazards --help shows all)",
                               pattern, did_you_mean(pattern, names))});
  }
  if (selected.empty()) return tl::unexpected(UsageError{"--quick leaves none of these scenarios"});
  return selected;
}

tl::expected<std::vector<const Descriptor*>, UsageError> select_built(
    const std::vector<std::string>& patterns, std::vector<results::Skipped>& skipped) {
  auto catalogue = all_strategies();
  const auto absent = absent_strategies();
  catalogue.insert(catalogue.end(), absent.begin(), absent.end());
  const auto selected = select_strategies(patterns, catalogue);
  if (!selected) return tl::unexpected(selected.error());
  std::vector<const Descriptor*> built;
  for (const auto& [strategy, named] : *selected) {
    if (strategy->not_built.empty()) {
      built.push_back(strategy);
    } else if (named) {
      return tl::unexpected(
          UsageError{fmt::format("{} cannot run here: {}", strategy->name, strategy->not_built)});
    } else {
      skipped.push_back({std::string(strategy->name), std::string(strategy->not_built)});
    }
  }
  return built;
}

}  // namespace lockbench::cli
