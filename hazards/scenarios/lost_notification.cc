#include <algorithm>
#include <thread>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

using testbed::ProxyCounts;

/// Waits until the proxy has been idle for 200 ms: everything in flight has arrived.
ProxyCounts await_silence(testbed::Proxy& line) {
  ProxyCounts counts = line.counts();
  const auto give_up_at = BootClock::now() + std::chrono::seconds(5);
  for (int silent = 0; silent < 20 && BootClock::now() < give_up_at; ++silent) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const ProxyCounts now = line.counts();
    if (now.to_client != counts.to_client || now.accepted < 2) silent = 0;
    counts = now;
  }
  return counts;
}

/// Whether the proxy has dropped some data.
bool await_loss(testbed::Proxy& line) {
  const auto give_up_at = BootClock::now() + std::chrono::seconds(5);
  while (line.counts().swallowed == 0) {
    if (BootClock::now() > give_up_at) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// The waiter's newest connection is the one on which it listens.
Verdict lost_notification(Play& play) {
  play.set_ttl(std::chrono::seconds(3));
  Actor& holder = play.client("holder", {.wait = "notify"});
  Actor& waiter = play.client("waiter", {.behind_line = true, .wait = "notify"});
  const Grant held = holder.must_acquire();
  waiter.start_acquire(play.stuck_after());
  waiter.await_waiting();
  testbed::Proxy& line = waiter.line();
  line.black_hole(testbed::Direction::both, {.number = await_silence(line).accepted});
  play.record_fault("the waiter's notification connection is cut silently");
  const TimePoint released_at = BootClock::now();
  require_release(holder.release(held));
  if (!await_loss(line)) throw Failure("no notification was sent, so none was lost");
  // Without a notification the waiter tries again when the lock that it saw must have expired, or
  // when its session finds the connection dead: at most one TTL, and a margin for a busy machine.
  return verdict_of_return(play, waiter.finish_acquire(), released_at, play.ttl() * 3 / 2);
}

const ScenarioRegistration lost_notification_scenario({
    .name = "lost-notification",
    .question = "The notification for a waiter is lost: does it get the lock within a bound?",
    .default_outcome = HazardOutcome::recovers,
    .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
      const auto& ways = strategy.traits.waiting_choices;
      const bool listens = std::find(ways.begin(), ways.end(), WaitKind::notify) != ways.end();
      if (listens || strategy.traits.waiting.kind == WaitKind::notify) return std::nullopt;
      return "its waiters do not listen for notifications";
    },
    .play = lost_notification,
});

}  // namespace
}  // namespace lockbench::hazards
