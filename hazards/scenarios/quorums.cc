#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// For Scenario::exempts: the scenario applies to locks on several independent nodes only.
const auto only_for_quorums = only_if([](const Descriptor& one) { return one.traits.nodes > 1; },
                                      "the lock does not use several independent nodes");

using Fault = void (PrivateStore::*)(std::size_t node);

/// With the strategy's default node timeout, a client on a busy machine may miss the answers of
/// healthy nodes. It then retries, and the retries count as part of the cost.
Grant acquire_with_retries(Actor& client) {
  constexpr int kTries = 5;
  constexpr std::chrono::milliseconds kPause{100};
  Grant grant = client.try_acquire(std::chrono::seconds(2));
  const TimePoint asked_at = grant.asked_at;
  for (int tries = 1; tries < kTries && grant.unanswered(); ++tries) {
    PlayClock::sleep_for(kPause);
    grant = client.try_acquire(std::chrono::seconds(2));
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
  // The cost depends on the strategy's default node timeout.
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
  if (second.granted()) return verdict_of_two(play, second, what);
  client.release(first);
  play.note("median_acquire_seconds_after", median_acquire(client, "with the remaining nodes"));
  return {HazardOutcome::safe, "the remaining nodes still grant the lock, to one client at a time"};
}

/// The first client is cut off from two of five nodes, so it holds the lock with exactly three
/// votes. The network heals, a fault removes one of the votes, and a second client acquires.
Verdict by_three_votes(Play& play, const std::function<void(const Grant&, Actor& second)>& fault) {
  Actor& holder = play.client("holder", {.behind_line = true});
  Actor& second = play.client("second");
  const auto& lines = holder.lines();
  lines.at(3)->black_hole();
  lines.at(4)->black_hole();
  play.record_fault("the network cuts the holder off from two of five nodes");
  const Grant held = holder.must_acquire();
  lines.at(3)->heal();
  lines.at(4)->heal();
  play.record_fault("the network heals");
  const TimePoint struck_at = PlayClock::now();
  fault(held, second);
  const Grant next = second.finish_acquire();
  if (next.granted()) {
    require_in_time("after the fault, the second client asked", *held.valid_until, next.asked_at,
                    {});
  }
  if (next.granted() && next.answered_at > *held.valid_until) {
    play.note("waited_past_validity_seconds", next.answered_at - *held.valid_until);
    return {HazardOutcome::safe,
            "the second client got the lock only after the first client's had expired"};
  }
  if (next.granted()) record_belief_gap(play, holder, held, struck_at);
  return verdict_of_two(play, next, "one of three votes was lost");
}

Verdict node_restart_empty(Play& play) {
  play.set_ttl(kLongTtl);
  return by_three_votes(play, [&](const Grant&, Actor& second) {
    play.store().kill_node(0);
    play.store().revive_node(0);
    play.record_fault("one of the three voters was killed and restarted empty");
    second.start_acquire(std::chrono::seconds(2));
  });
}

/// The second client keeps asking.
Verdict node_restart_delayed(Play& play) {
  play.set_ttl(std::chrono::seconds(3));
  return by_three_votes(play, [&](const Grant& held, Actor& second) {
    play.store().kill_node(0);
    play.record_fault("one of the three voters was killed");
    second.start_acquire(play.stuck_after());
    play.wait_until(held.asked_at + play.ttl());
    play.store().revive_node(0);
    play.record_fault("it restarts empty, one TTL later");
  });
}

Verdict node_clock_jump(Play& play) {
  play.set_ttl(kLongTtl);
  return by_three_votes(play, [&](const Grant&, Actor& second) {
    play.store().jump_clock(2 * kLongTtl);
    play.record_fault("the wall clock of one of the three voters jumped ahead");
    second.start_acquire(std::chrono::seconds(2));
  });
}

/// Every answer takes longer than the TTL. A first acquisition with a long TTL shows that the votes
/// do arrive.
Verdict slow_nodes(Play& play) {
  constexpr std::chrono::milliseconds kEachWay{100};
  constexpr Duration kTtl = kEachWay * 3 / 2;
  Actor& client =
      play.client("client", {.behind_line = true, .node_timeout = std::chrono::milliseconds(1500)});
  for (const auto& line : client.lines()) line->delay(kEachWay);
  play.record_fault("every answer takes " + milliseconds(2 * kEachWay));
  play.set_ttl(kLongTtl);
  const Grant lasting = client.must_acquire();
  play.note("grant_seconds", lasting.answered_at - lasting.asked_at);
  client.release(lasting);

  play.change_key();
  play.set_ttl(kTtl);
  const Grant grant = client.acquire();
  if (!grant.granted()) {
    if (grant.answered_at - grant.asked_at < 2 * kEachWay) {
      throw Failure("refused before any vote arrived, so lack of validity was not the reason");
    }
    return {HazardOutcome::refused,
            "the validity, counted from the request, was used up when the votes arrived"};
  }
  play.note("validity_left_seconds", *grant.valid_until - grant.answered_at);
  const Grant second = play.client("second").acquire(std::chrono::seconds(2));
  return verdict_of_two(play, second, "the lock had expired when it was granted");
}

constexpr std::chrono::seconds kWait{15};

/// Starts to acquire and stops before the request to `node` (from 1). It keeps the earlier votes.
void stall_at(Actor& client, int node) {
  client.arm(CommandFault::Action::stall, CommandFault::Place::before, node);
  client.start_acquire(kWait, PlayClock::now());
  client.await_stop();
}

/// Two clients have two of five votes each, so a third can get only the last vote: no client has a
/// majority. Then all clients acquire at the same instant and release immediately. The TTL is
/// longer than all waits, so votes that a loser keeps would block the others.
Verdict split_vote(Play& play) {
  constexpr int kClients = 6;
  play.set_ttl(2 * kLongTtl);
  std::vector<Actor*> clients;
  for (int i = 1; i <= kClients; ++i) {
    clients.push_back(&play.client(fmt::format("client {}", i)));
    clients.back()->warm_up();
  }
  stall_at(*clients[0], 3);
  stall_at(*clients[1], 5);
  if (clients[2]->acquire().granted()) throw Failure("the votes were not split");
  const TimePoint at = PlayClock::now() + std::chrono::milliseconds(100);
  for (int i = 2; i < kClients; ++i) {
    clients[static_cast<std::size_t>(i)]->start_acquire(kWait, at);
  }
  clients[0]->resume();
  clients[1]->resume();
  int granted = 0;
  Duration longest{};
  for (Actor* client : clients) {
    const Grant grant = client->finish_acquire();
    granted += grant.granted() ? 1 : 0;
    longest = std::max(longest, grant.answered_at - grant.asked_at);
  }
  play.note("longest_wait_seconds", longest);
  if (granted < kClients) {
    return {HazardOutcome::stuck, fmt::format("{} of {} clients got the lock within {}", granted,
                                              kClients, milliseconds(longest))};
  }
  return {HazardOutcome::safe,
          fmt::format("all {} clients got the lock within {}", kClients, milliseconds(longest))};
}

const ScenarioRegistration quorums_scenarios({
    {.name = "redlock-minority-down",
     .question = "Two of five nodes are dead: is the lock still granted, to one client at a time?",
     .setup = Setup::volatile_,
     .exempts = only_for_quorums,
     .play =
         [](Play& play) {
           return last_nodes(play, 2, &PrivateStore::kill_node, "two of five nodes are dead");
         }},
    {.name = "redlock-majority-down",
     .question = "Three of five nodes are dead: is the lock still granted?",
     .setup = Setup::volatile_,
     .quick = true,
     .exempts = only_for_quorums,
     .play =
         [](Play& play) {
           return last_nodes(play, 3, &PrivateStore::kill_node, "three of five nodes are dead");
         }},
    {.name = "redlock-minority-frozen",
     .question = "Two of five nodes are frozen: is the lock still granted, and at what cost?",
     .setup = Setup::volatile_,
     .exempts = only_for_quorums,
     .play =
         [](Play& play) {
           return last_nodes(play, 2, &PrivateStore::freeze_node, "two of five nodes are frozen");
         }},
    {.name = "redlock-node-restart-empty",
     .question = "One of three voters is killed and restarts empty: do two clients hold the lock?",
     .setup = Setup::volatile_,
     .quick = true,
     .exempts = only_for_quorums,
     .play = node_restart_empty},
    {.name = "redlock-node-restart-delayed",
     .question = "As before, but it restarts only after one TTL: do two clients hold the lock?",
     .setup = Setup::volatile_,
     .exempts = only_for_quorums,
     .play = node_restart_delayed},
    {.name = "redlock-clock-jump",
     .question = "The wall clock of one of three voters jumps ahead: do two clients hold the lock?",
     .setup = Setup::clocked,
     .exempts = only_for_quorums,
     .play = node_clock_jump},
    {.name = "redlock-slow-nodes",
     .question = "Votes arrive when the validity is used up: is the lock granted anyway?",
     .quick = true,
     .exempts = only_for_quorums,
     .play = slow_nodes},
    {.name = "redlock-split-vote",
     .question = "Nobody has a majority and many clients retry together: does each get the lock?",
     .exempts = only_for_quorums,
     .play = split_vote},
});

}  // namespace
}  // namespace lockbench::hazards
