#include <fmt/format.h>

#include <algorithm>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

constexpr std::chrono::seconds kWait{15};

/// Asks, and stands still before its question to one of the nodes, from 1: what it has by then it
/// keeps.
void stall_at(Actor& client, int node) {
  client.arm(CommandFault::Action::stall, CommandFault::Place::before, node);
  client.ask_and_release(kWait, std::chrono::steady_clock::now());
  client.await_stop();
}

/// Two of five votes are one client's, two another's, and a third client can have but the last:
/// nobody has a majority. Then all want the lock, at the same instant, and give it back at once. It
/// lasts longer than anybody waits: votes that a loser kept would block the others for good.
Verdict split_vote(Play& play) {
  constexpr int kClients = 6;
  play.ask_for_ttl(2 * kLongTtl);
  std::vector<Actor*> clients;
  for (int i = 1; i <= kClients; ++i) {
    clients.push_back(&play.client(fmt::format("client {}", i)));
    clients.back()->rehearse();
  }
  stall_at(*clients[0], 3);
  stall_at(*clients[1], 5);
  Grant lost = clients[2]->acquire();
  need_answer(lost);
  if (lost.granted()) throw StageFailure("the votes were not split");
  const TimePoint at = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  for (int i = 2; i < kClients; ++i) {
    clients[static_cast<std::size_t>(i)]->ask_and_release(kWait, at);
  }
  clients[0]->resume();
  clients[1]->resume();
  int granted = 0, rounds = lost.rounds, split = lost.split_votes;
  Duration longest{};
  for (Actor* client : clients) {
    const Grant grant = client->answer();
    need_answer(grant);
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
          fmt::format("all {} had the lock within {}, after {} rounds of votes", kClients,
                      milliseconds(longest), rounds)};
}

const ScenarioRegistration registration({
    .name = "redlock-split-vote",
    .question = "Nobody has a majority, and many ask at once: do all get the lock, in turn?",
    .exempts = unless_on_several_nodes,
    .play = split_vote,
});

}  // namespace
}  // namespace lockbench::hazards
