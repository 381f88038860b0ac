#include <algorithm>

#include "hazards/lapse.h"

namespace lockbench::hazards {
namespace {

/// The holder's client knows one member only, the second client the others.
Verdict isolation(Play& play, bool leads, Lapse lapse) {
  constexpr std::size_t kMembers = 3;
  const std::size_t member = play.store().member(leads);
  lapse.what = leads ? "the leader, to which the holder is connected, was cut off"
                     : "the member to which the holder is connected was cut off";
  lapse.begin = [&play, member, leads](Actor&) {
    play.store().isolate(member);
    play.record_fault(leads ? "the network cuts the leader off from the other members"
                            : "the network cuts one member off from the others");
  };
  lapse.end = [&play](Actor&) {
    play.store().reunite();
    play.record_fault("the members reach each other again");
  };
  lapse.patience = std::chrono::seconds(30);
  lapse.holders_members = {member};
  for (std::size_t other = 0; other < kMembers; ++other) {
    if (other != member) lapse.seconds_members.push_back(other);
  }
  return play_lapse(play, lapse);
}

std::optional<std::string> only_for_clusters(const Descriptor& strategy) {
  const auto* const kind = deployment::find_private_store_kind(strategy.backend);
  if (kind != nullptr && kind->clusters) return std::nullopt;
  return "its servers do not vote";
}

const ScenarioRegistration member_isolated_scenario({
    .name = "member-isolated",
    .question = "The holder's member is cut off from the others: does the holder know in time?",
    .setup = Setup::split,
    .needs = Scenario::Needs::expiry,
    .exempts = only_for_clusters,
    .play = [](Play& play) { return isolation(play, /*leads=*/false, {.looks = true}); },
});

const ScenarioRegistration leader_isolated_scenario({
    .name = "leader-isolated",
    .question = "The leader is cut off with the holder's client: does the holder know in time?",
    .setup = Setup::split,
    .needs = Scenario::Needs::expiry,
    .exempts = only_for_clusters,
    .play = [](Play& play) { return isolation(play, /*leads=*/true, {.looks = true}); },
});

const ScenarioRegistration member_isolated_fenced_scenario({
    .name = "member-isolated-fenced",
    .question = "As member-isolated, but the resource checks numbers: is the late write rejected?",
    .setup = Setup::split,
    .needs = Scenario::Needs::expiry,
    .exempts = only_for_clusters,
    .play = [](Play& play) { return isolation(play, /*leads=*/false, {.fenced = true}); },
});

}  // namespace
}  // namespace lockbench::hazards
