#include "choose/requirements.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "hazards/scenario.h"

namespace lockbench::choose {
// A test checks that every scenario exists.
const std::vector<Survival>& fault_words() {
  static const std::vector<Survival> words{
      {.word = "contention", .scenarios = {"contention"}, .is_basic = true},
      {.word = "late-release", .scenarios = {"late-release"}, .is_basic = true},
      {.word = "lost-answer",
       .scenarios = {"lost-answer-acquire", "lost-answer-release"},
       .is_basic = true},
      {.word = "crash",
       .scenarios = {"crash-holding", "crash-mid-acquire", "crash-waiting"},
       .workaround = "an operator or a job that removes the locks of dead clients",
       .is_basic = true},
      {.word = "host-crash",
       .scenarios = {"host-crash"},
       .workaround = "keepalives at the server that end dead connections (tcp_keepalives_idle)",
       .on_condition = {"host-crash-keepalive"},
       .condition = "the server's TCP keepalives end the connections of dead hosts (see settings)"},
      {.word = "pause",
       .scenarios = {"pause-holding", "pause-holding-late"},
       .workaround = "writes that the resource rejects after another holder's grant: by a fencing "
                     "number, or by comparing a version",
       .fenced = {"pause-holding-fenced"},
       .outlasted = true},
      {.word = "overrun",
       .scenarios = {"overrun-holding", "overrun-holding-late", "late-release"},
       .workaround = "a TTL well above the longest work, or renewal (--renew auto)",
       .must_last = true},
      {.word = "runaway",
       .scenarios = {"runaway-holder"},
       .workaround = "--renew-cap: no renewal beyond the longest legitimate work"},
      {.word = "partition",
       .scenarios = {"partition-holder", "partition-holder-late", "member-isolated",
                     "leader-isolated"},
       .workaround = "a holder that stops before its lease ends, and writes that the resource "
                     "rejects after another holder's grant",
       .fenced = {"partition-holder-fenced", "member-isolated-fenced"}},
      {.word = "failover",
       .scenarios = {"failover", "failover-sentinel", "failover-acknowledged",
                     "failover-wrong-replica"},
       .workaround = "work that may run twice (idempotent, or guarded by a compared version)",
       .takes_a_server = true},
      // A store without persistence is empty after a restart.
      {.word = "restart",
       .scenarios = {"store-restart-durable"},
       .workaround = "a pause of one TTL before a restarted server serves clients",
       .otherwise = {"store-restart-empty"}},
      {.word = "data-loss",
       .scenarios = {"store-restart-empty", "redlock-node-restart-empty"},
       .workaround = "persistence (appendfsync always), or a pause of one TTL after the restart"},
      {.word = "clock-jump",
       .scenarios = {"store-clock-jump", "redlock-clock-jump", "client-clock-ahead",
                     "holder-clock-behind"},
       .workaround = "clocks that are slewed, never stepped (chrony with makestep off)"},
      {.word = "memory-pressure",
       .scenarios = {"redis-eviction", "redis-eviction-lru", "memcached-eviction"},
       .workaround =
           "a separate store for locks that evicts nothing (maxmemory-policy noeviction)"},
      {.word = "pooler",
       .scenarios = {"pooler-leaked-lock", "pooler-reentry"},
       .workaround = "connections that bypass the transaction pooler",
       .for_good = true},
  };
  return words;
}

std::optional<Survival> find_survival(std::string_view text) {
  const auto& words = fault_words();
  const auto known = std::ranges::find(words, text, &Survival::word);
  if (known != words.end()) return *known;
  Survival survival{.word = std::string(text), .scenarios = {}};
  for (const hazards::Scenario* scenario : hazards::all_scenarios()) {
    std::string name(scenario->name);
    if (fnmatch(survival.word.c_str(), name.c_str(), 0) == 0) {
      survival.scenarios.push_back(std::move(name));
    }
  }
  if (survival.scenarios.empty()) return std::nullopt;
  survival.for_good = survival.scenarios.front().starts_with("pooler-");
  return survival;
}

std::vector<Survival> faults_to_survive(const Requirements& requirements) {
  const auto& waived = requirements.waived;
  const auto& named = requirements.survive;
  std::vector<Survival> faults;
  for (const Survival& one : fault_words()) {
    if (one.is_basic && std::ranges::find(waived, one.word) == waived.end() &&
        std::ranges::find(named, one.word, &Survival::word) == named.end()) {
      faults.push_back(one);
    }
  }
  for (const Survival& one : named) {
    faults.push_back(one);
    faults.back().is_basic = false;  // it was asked for by name
  }
  const std::pair<const char*, std::optional<Duration>> sized[] = {
      {"pause", requirements.pause},
      {"restart", requirements.outage},
      {"failover", requirements.failover}};
  for (const auto& [word, longest] : sized) {
    if (!longest) continue;
    auto fault = std::ranges::find(faults, word, &Survival::word);
    if (fault == faults.end()) fault = faults.insert(fault, *find_survival(word));
    fault->longest = longest;
  }
  return faults;
}

bool must_survive(const Requirements& requirements, std::string_view word) {
  const auto faults = faults_to_survive(requirements);
  return std::ranges::find(faults, word, &Survival::word) != faults.end();
}

}  // namespace lockbench::choose
