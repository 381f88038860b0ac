#include <algorithm>
#include <chrono>

#include "cli/commands/commands.h"
#include "cli/commands/measurement.h"
#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using loadgen::NamedLoad;

struct OverviewOptions : RunOptions {
  static constexpr std::string_view kCommand = "overview";
  bool all = false;

  OverviewOptions() {
    workload.duration = 8s;
    workload.settles_after = 2s;
  }

  void declare(OptionList& options) {
    options.only({"strategies", "threads", "duration", "warmup", "contended-grants", "repeat",
                  "store-timeout"},
                 [&] { LoadOptions::declare(options); });
    declare_servers(options, servers);
    options.at("strategies").default_text = "a typical one of each family";
    options.without({"strict"}, [&] { output.declare(options); });
    options.heading("Load");
    options.add_flag("all", all, "every strategy, the flawed ones last");
  }

  void complete(const OptionList& options) {
    loads = {NamedLoad::alone, NamedLoad::demand, NamedLoad::saturated};
    if (all && !strategies.empty()) {
      throw UsageError("--all cannot be combined with names of strategies");
    }
    LoadOptions::complete(options);
  }
};

/// A lock that cannot be given back safely, or that nothing ends if its holder dies.
bool is_flawed(const Descriptor& strategy) {
  const Traits& traits = strategy.traits;
  return store_traits(strategy.backend).servers &&
         (traits.release_check != OwnerCheck::atomic || traits.expiry == Expiry::none);
}

/// The typical strategy of each family; with `all` the others behind them.
std::vector<Selected> usual(bool all) {
  std::vector<Selected> selected;
  for (const Descriptor* strategy : all_strategies()) {
    if (all || strategy->typical) selected.push_back({strategy, false});
  }
  std::ranges::stable_sort(selected, {}, [](const Selected& one) {
    return std::pair(is_flawed(*one.strategy), !one.strategy->typical);
  });
  return selected;
}

int overview(const OverviewOptions& given) {
  RunOptions options = given;
  if (!options.strategies.empty()) return measure(options, select_for_load(options));
  std::vector<Selected> selected = usual(given.all);
  // For the result.
  for (const Selected& one : selected) options.strategies.emplace_back(one.strategy->name);
  return measure(options, std::move(selected));
}

}  // namespace

Command overview_command() {
  return make_command<OverviewOptions>(
      {.task = kMeasure,
       .summary =
           "Compare locks under three loads: what they cost, what clients wait, who starves.",
       .example = "lockbench overview redis-queue redlock etcd",
       .over_ranks = true},
      overview);
}

}  // namespace lockbench::cli
