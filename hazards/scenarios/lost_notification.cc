#include <algorithm>
#include <thread>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

using testbed::ProxyCounts;

/// Until the line has been silent for a while: what was on its way is there.
ProxyCounts await_silence(testbed::Proxy& line) {
  ProxyCounts counts = line.counts();
  const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (int silent = 0; silent < 20 && std::chrono::steady_clock::now() < give_up_at; ++silent) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const ProxyCounts now = line.counts();
    if (now.to_client != counts.to_client || now.accepted < 2) silent = 0;
    counts = now;
  }
  return counts;
}

/// Whether something was on its way that never arrived.
bool await_loss(testbed::Proxy& line) {
  const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (line.counts().swallowed == 0) {
    if (std::chrono::steady_clock::now() > give_up_at) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// The waiter's latest connection is the one on which it listens.
Verdict lost_notification(Play& play) {
  play.ask_for_ttl(std::chrono::seconds(3));
  Actor& holder = play.client("holder", {.wait = "notify"});
  Actor& waiter = play.client("waiter", {.behind_line = true, .wait = "notify"});
  const Grant held = holder.hold();
  waiter.ask(play.patience());
  waiter.await_waiting();
  testbed::Proxy& line = waiter.line();
  line.black_hole(testbed::Direction::both,
                  testbed::Connections::number(await_silence(line).accepted));
  play.tell("what the waiter listens on is dead");
  const TimePoint released_at = std::chrono::steady_clock::now();
  need_release(holder.release(held));
  if (!await_loss(line)) throw StageFailure("no message was on its way to be lost");
  // Whoever hears nothing asks again when the lock that he saw must have run out, or when his
  // session finds its connection dead: a TTL at most, and what a busy machine adds.
  return verdict_of_return(play, waiter.answer(), released_at, play.ttl() * 3 / 2);
}

const ScenarioRegistration registration({
    .name = "lost-notification",
    .question = "The message that wakes a waiter is lost: does it ever wake?",
    .unless_declared = HazardOutcome::recovers,
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      const auto& ways = strategy.traits.waiting_choices;
      const bool listens = std::find(ways.begin(), ways.end(), WaitKind::notify) != ways.end();
      if (listens || strategy.traits.waiting.kind == WaitKind::notify) return std::nullopt;
      return "its waiters do not listen on a connection of their own";
    },
    .play = lost_notification,
});

}  // namespace
}  // namespace lockbench::hazards
