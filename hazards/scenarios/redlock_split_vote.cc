#include <fmt/format.h>

#include <algorithm>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

constexpr std::chrono::seconds kWait{15};

/// Starts to acquire and stops before the request to `node` (from 1). It keeps the earlier votes.
void stall_at(Actor& client, int node) {
  client.arm(CommandFault::Action::stall, CommandFault::Place::before, node);
  client.start_acquire_and_release(kWait, BootClock::now());
  client.await_stop();
}

/// One client has two of five votes, another has two, so a third can get only the last one: no
/// client has a majority. Then all clients acquire at the same instant and release at once. The TTL
/// is longer than all waits, so votes that a loser keeps would block the others.
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
  Grant lost = clients[2]->acquire();
  require_answer(lost);
  if (lost.granted()) throw Failure("the votes were not split");
  const TimePoint at = BootClock::now() + std::chrono::milliseconds(100);
  for (int i = 2; i < kClients; ++i) {
    clients[static_cast<std::size_t>(i)]->start_acquire_and_release(kWait, at);
  }
  clients[0]->resume();
  clients[1]->resume();
  int granted = 0, rounds = lost.rounds, split = lost.split_votes;
  Duration longest{};
  for (Actor* client : clients) {
    const Grant grant = client->finish_acquire();
    require_answer(grant);
    granted += grant.granted() ? 1 : 0;
    rounds += grant.rounds;
    split += grant.split_votes;
    longest = std::max(longest, grant.answered_at - grant.asked_at);
  }
  play.note("split_votes", std::int64_t{split});
  play.note("longest_wait_seconds", longest);
  if (granted < kClients) {
    return {HazardOutcome::stuck, fmt::format("{} of {} clients got the lock within {}", granted,
                                              kClients, milliseconds(longest))};
  }
  play.note("rounds_per_grant", static_cast<double>(rounds) / granted);
  return {HazardOutcome::safe,
          fmt::format("all {} clients got the lock within {}, after {} rounds of votes", kClients,
                      milliseconds(longest), rounds)};
}

const ScenarioRegistration redlock_split_vote_scenario({
    .name = "redlock-split-vote",
    .question = "Nobody has a majority and many clients retry at once: does each get the lock?",
    .exempts = only_for_quorums,
    .play = split_vote,
});

}  // namespace
}  // namespace lockbench::hazards
