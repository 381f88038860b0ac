#include "choose/survival.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "hazards/scenario.h"

namespace lockbench::choose {
namespace {

// A test sees to it that every scenario exists.
constexpr std::array<FaultWord, 12> kWords{{
    {"crash", "crash-holding crash-mid-acquire crash-waiting"},
    {"host-crash", "host-crash"},
    {"pause", "pause-holding", "pause-holding-fenced"},
    {"overrun", "overrun-holding late-release"},
    {"runaway", "runaway-holder"},
    {"partition", "partition-holder"},
    {.word = "failover", .scenarios = "failover failover-sentinel", .takes_a_server = true},
    // What keeps nothing on disk is empty afterwards.
    {.word = "restart", .scenarios = "store-restart-durable", .otherwise = "store-restart-empty"},
    {"data-loss", "store-restart-empty redlock-node-restart-empty"},
    {"clock-jump", "store-clock-jump redlock-clock-jump client-clock-ahead holder-clock-behind"},
    {"memory-pressure", "redis-eviction memcached-eviction"},
    {"lost-answer", "lost-answer-acquire lost-answer-release"},
}};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

std::span<const FaultWord> fault_words() { return kWords; }

std::optional<Survival> find_survival(std::string_view text) {
  const auto* const known = std::find_if(kWords.begin(), kWords.end(),
                                         [&](const FaultWord& one) { return one.word == text; });
  if (known != kWords.end()) {
    return Survival{.word = std::string(text),
                    .scenarios = split(known->scenarios),
                    .fenced = split(known->fenced),
                    .otherwise = split(known->otherwise),
                    .takes_a_server = known->takes_a_server};
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
  return std::any_of(kWords.begin(), kWords.end(), [&](const FaultWord& one) {
    return !one.fenced.empty() && one.fenced.find(scenario) != std::string_view::npos;
  });
}

}  // namespace lockbench::choose
