#include <algorithm>
#include <array>
#include <thread>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

using Fault = void (PrivateStore::*)(std::size_t node);

/// With the strategy's own node timeout a client may miss the answers of healthy nodes on a busy
/// machine. It then retries, and the retries count as part of the cost.
Grant acquire_with_retries(Actor& client) {
  constexpr int kTries = 5;
  constexpr std::chrono::milliseconds kPause{100};
  const auto no_answer = [](const Grant& grant) {
    return grant.outcome == AcquireOutcome::failed || grant.outcome == AcquireOutcome::unknown;
  };
  Grant grant = client.acquire(std::chrono::seconds(2));
  const TimePoint asked_at = grant.asked_at;
  for (int tries = 1; tries < kTries && no_answer(grant); ++tries) {
    std::this_thread::sleep_for(kPause);
    grant = client.acquire(std::chrono::seconds(2));
  }
  grant.asked_at = asked_at;
  return grant;
}

/// Median of five acquisitions.
Duration median_acquire(Actor& client, std::string_view when) {
  std::array<Duration, 5> took{};
  for (Duration& one : took) {
    const Grant grant = acquire_with_retries(client);
    if (!grant.granted()) throw Failure("no grant " + std::string(when));
    one = grant.answered_at - grant.asked_at;
    client.release(grant);
  }
  std::nth_element(took.begin(), took.begin() + 2, took.end());
  return took[2];
}

/// The last `count` nodes fail while the lock is free; then two clients contend for it.
Verdict last_nodes(Play& play, std::size_t count, Fault fault, std::string_view what) {
  play.set_ttl(kLongTtl);
  // The cost depends on the strategy's own node timeout.
  Actor& client = play.client("client", {.node_timeout = std::nullopt});
  Actor& other = play.client("other");
  play.note("median_acquire_seconds_before", median_acquire(client, "while all nodes are healthy"));
  const std::size_t nodes = play.store().ports().size();
  for (std::size_t node = nodes - count; node < nodes; ++node) (play.store().*fault)(node);
  play.record_fault(std::string(what));
  const Grant first = acquire_with_retries(client);
  if (!first.granted()) {
    return {HazardOutcome::unavailable, "no client is granted the lock: " + first.reason};
  }
  play.note("first_acquire_seconds_after", first.answered_at - first.asked_at);
  const Grant second = other.acquire();
  require_answer(second);
  if (second.granted()) return verdict_of_two(play, second, what);
  client.release(first);
  play.note("median_acquire_seconds_after", median_acquire(client, "with the remaining nodes"));
  return {HazardOutcome::safe, "the remaining nodes still grant the lock, to one client at a time"};
}

Verdict minority_down(Play& play) {
  return last_nodes(play, 2, &PrivateStore::kill_node, "two of five nodes are dead");
}
Verdict majority_down(Play& play) {
  return last_nodes(play, 3, &PrivateStore::kill_node, "three of five nodes are dead");
}
Verdict minority_frozen(Play& play) {
  return last_nodes(play, 2, &PrivateStore::freeze_node, "two of five nodes are frozen");
}

const ScenarioRegistration redlock_minority_down_scenario({
    .name = "redlock-minority-down",
    .question = "Two of five nodes are dead: is the lock still granted, to one client at a time?",
    .setup = Setup::volatile_,
    .exempts = only_for_quorums,
    .play = minority_down,
});

const ScenarioRegistration redlock_majority_down_scenario({
    .name = "redlock-majority-down",
    .question = "Three of five nodes are dead: is the lock still granted?",
    .setup = Setup::volatile_,
    .quick = true,
    .exempts = only_for_quorums,
    .play = majority_down,
});

const ScenarioRegistration redlock_minority_frozen_scenario({
    .name = "redlock-minority-frozen",
    .question = "Two of five nodes are frozen: is the lock still granted, and at what cost?",
    .setup = Setup::volatile_,
    .exempts = only_for_quorums,
    .play = minority_frozen,
});

}  // namespace
}  // namespace lockbench::hazards
