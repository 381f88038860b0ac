#include <algorithm>
#include <array>
#include <thread>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

using Fault = void (Stage::*)(std::size_t node);

/// Whoever has but the strategy's own patience with nodes may miss the answers of healthy ones on a
/// busy machine, and asks again: what that takes is part of the price.
Grant ask_again(Actor& client) {
  constexpr int kTries = 5;
  constexpr std::chrono::milliseconds kPause{100};
  const auto unheard = [](const Grant& grant) {
    return grant.outcome == AcquireOutcome::failed || grant.outcome == AcquireOutcome::unknown;
  };
  Grant grant = client.acquire(std::chrono::seconds(2));
  const TimePoint asked_at = grant.asked_at;
  for (int tries = 1; tries < kTries && unheard(grant); ++tries) {
    std::this_thread::sleep_for(kPause);
    grant = client.acquire(std::chrono::seconds(2));
  }
  grant.asked_at = asked_at;
  return grant;
}

/// What a grant takes, of several.
Duration price(Actor& client, std::string_view when) {
  std::array<Duration, 5> took{};
  for (Duration& one : took) {
    const Grant grant = ask_again(client);
    if (!grant.granted()) throw StageFailure("no grant " + std::string(when));
    one = grant.answered_at - grant.asked_at;
    client.release(grant);
  }
  std::nth_element(took.begin(), took.begin() + 2, took.end());
  return took[2];
}

/// The last nodes fail while nobody holds the lock; then two clients want it.
Verdict last_nodes(Play& play, std::size_t count, Fault fault, std::string_view what) {
  play.ask_for_ttl(kLongTtl);
  // The strategy's own patience with a node is what the price depends on.
  Actor& client = play.client("client", {.node_timeout = std::nullopt});
  Actor& other = play.client("other");
  play.note("median_acquire_seconds_before", price(client, "while all nodes are well"));
  const std::size_t nodes = play.stage().ports().size();
  for (std::size_t node = nodes - count; node < nodes; ++node) (play.stage().*fault)(node);
  play.tell(std::string(what));
  const Grant first = ask_again(client);
  if (!first.granted()) {
    return {HazardOutcome::unavailable, "nobody is granted the lock: " + first.reason};
  }
  // Whoever meets them first pays; from then on they are left alone for a while.
  play.note("first_acquire_seconds_after", first.answered_at - first.asked_at);
  const Grant second = other.acquire();
  need_answer(second);
  if (second.granted()) return verdict_of_two(play, second, what);
  client.release(first);
  play.note("median_acquire_seconds_after", price(client, "with the nodes that are left"));
  return {HazardOutcome::safe, "grants go on with the nodes that are left, to one at a time"};
}

Verdict minority_down(Play& play) {
  return last_nodes(play, 2, &Stage::kill_node, "two of five nodes are dead");
}
Verdict majority_down(Play& play) {
  return last_nodes(play, 3, &Stage::kill_node, "three of five nodes are dead");
}
Verdict minority_frozen(Play& play) {
  return last_nodes(play, 2, &Stage::freeze_node, "two of five nodes stand still");
}

const ScenarioRegistration few({
    .name = "redlock-minority-down",
    .question = "Two of five nodes are dead: do grants go on, and to one at a time?",
    .ground = Ground::volatile_,
    .exempts = unless_on_several_nodes,
    .play = minority_down,
});

const ScenarioRegistration many({
    .name = "redlock-majority-down",
    .question = "Three of five nodes are dead: is anybody granted the lock?",
    .ground = Ground::volatile_,
    .quick = true,
    .exempts = unless_on_several_nodes,
    .play = majority_down,
});

const ScenarioRegistration frozen({
    .name = "redlock-minority-frozen",
    .question = "Two of five nodes answer nothing: do grants go on, and at what price?",
    .ground = Ground::volatile_,
    .exempts = unless_on_several_nodes,
    .play = minority_frozen,
});

}  // namespace
}  // namespace lockbench::hazards
