#include "choose/survival.h"

#include <fnmatch.h>

#include <algorithm>

#include "hazards/scenario.h"

namespace lockbench::choose {
// A test checks that every scenario exists.
const std::vector<Survival>& fault_words() {
  static const std::vector<Survival> words{
      {"crash", {"crash-holding", "crash-mid-acquire", "crash-waiting"}},
      {"host-crash", {"host-crash"}},
      {"pause", {"pause-holding"}, {"pause-holding-fenced"}},
      {"overrun", {"overrun-holding", "late-release"}},
      {"runaway", {"runaway-holder"}},
      {"partition", {"partition-holder"}},
      {.word = "failover", .scenarios = {"failover", "failover-sentinel"}, .takes_a_server = true},
      // A store that keeps nothing on disk is empty after a restart.
      {.word = "restart",
       .scenarios = {"store-restart-durable"},
       .otherwise = {"store-restart-empty"}},
      {"data-loss", {"store-restart-empty", "redlock-node-restart-empty"}},
      {"clock-jump",
       {"store-clock-jump", "redlock-clock-jump", "client-clock-ahead", "holder-clock-behind"}},
      {"memory-pressure", {"redis-eviction", "memcached-eviction"}},
      {"lost-answer", {"lost-answer-acquire", "lost-answer-release"}},
  };
  return words;
}

std::optional<Survival> find_survival(std::string_view text) {
  for (const Survival& known : fault_words()) {
    if (known.word == text) return known;
  }
  Survival survival{.word = std::string(text), .scenarios = {}};
  const std::string glob(text);
  for (const hazards::Scenario* scenario : hazards::all_scenarios()) {
    if (fnmatch(glob.c_str(), std::string(scenario->name).c_str(), 0) == 0) {
      survival.scenarios.emplace_back(scenario->name);
    }
  }
  if (survival.scenarios.empty()) return std::nullopt;
  return survival;
}

bool needs_fencing_resource(std::string_view scenario) {
  return std::any_of(fault_words().begin(), fault_words().end(), [&](const Survival& one) {
    return std::find(one.fenced.begin(), one.fenced.end(), scenario) != one.fenced.end();
  });
}

}  // namespace lockbench::choose
