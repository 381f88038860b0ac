#include <fmt/format.h>

#include <algorithm>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

constexpr std::chrono::seconds kReachesWithin{5};

/// Cuts the client's connection between its next request and the answer. The commands of a client
/// program do not show, but its network can fail.
class AnswerLoss {
 public:
  AnswerLoss(Play& play, Actor& client) : play_(play), line_(*client.lines().front()) {
    line_.delay(std::chrono::milliseconds(250));
    before_ = line_.counts().from_server;
  }
  /// Returns once the store has answered, and the connection is gone.
  void strike() {
    const auto answered = [&] { return line_.counts().from_server != before_; };
    if (!comes_true(kReachesWithin, answered)) {
      throw Failure("the client sent no request that the store answered");
    }
    // The answer is still on its way.
    line_.cut();
    line_.heal();
    play_.record_fault("the store has answered a request; the network loses the answer");
  }

 private:
  Play& play_;
  testbed::Line& line_;
  std::uint64_t before_ = 0;
};

/// The verdict on a client that has lost an answer, and asks again. Leaves the lock free if it is
/// `safe`.
Verdict verdict_of_retry(Play& play, Actor& client, const Grant& first) {
  if (first.granted()) {
    client.release(first);
    return {HazardOutcome::safe, "the client was granted the lock all the same"};
  }
  const Grant again = client.acquire(2 * play.ttl());
  const Duration took = again.answered_at - first.answered_at;
  play.note("second_try_seconds", took);
  if (!again.granted() || took > play.ttl() / 2) {
    return {HazardOutcome::stuck,
            fmt::format("the client did not recognise its own lock: {} after {}",
                        again.granted() ? "granted" : "still refused", milliseconds(took))};
  }
  client.release(again);
  return {HazardOutcome::safe, "the client got the lock again within " + milliseconds(took)};
}

Verdict program_loses_grant(Play& play) {
  Actor& client = play.client("client", {.behind_line = true});
  client.warm_up();
  AnswerLoss loss(play, client);
  client.start_acquire(std::chrono::seconds(1));
  loss.strike();
  return verdict_of_retry(play, client, client.finish_any_acquire());
}

Verdict program_loses_release(Play& play) {
  Actor& holder = play.client("holder", {.behind_line = true});
  Actor& successor = play.client("successor");
  const Grant held = holder.must_acquire();
  AnswerLoss loss(play, holder);
  holder.start_release(held);
  loss.strike();
  holder.finish_release();
  const Grant next = successor.acquire(std::chrono::seconds(1));
  if (!next.granted()) return {HazardOutcome::stuck, "the first release left the lock taken"};
  require_release(holder.release(held));
  return verdict_of_release(play, "successor");
}

/// Drops the answer to each command of an acquisition in turn.
Verdict lost_answer_acquire(Play& play) {
  play.set_ttl(std::chrono::seconds(2));
  if (play.of_program()) return program_loses_grant(play);
  Verdict verdict{HazardOutcome::safe, "it sends no command"};
  for (int place = 1, places = 1; place <= places; ++place) {
    Actor& client = play.client("client");
    client.warm_up();
    places = client.acquire_commands();
    if (places == 0) break;
    play.change_key();
    client.release(
        client.must_acquire());  // creates things that exist once per lock: a parent node
    client.arm(CommandFault::Action::drop_answer, CommandFault::Place::after, place);
    const Grant first = client.try_acquire(std::chrono::seconds(1));
    verdict = verdict_of_retry(play, client, first);
    if (verdict.outcome != HazardOutcome::safe) {
      verdict.reason += fmt::format(" (answer to command {} of {} lost)", place, places);
      return verdict;
    }
  }
  return verdict;
}

/// Drops the answer to each command of a release in turn.
Verdict lost_answer_release(Play& play) {
  play.set_ttl(kLongTtl);
  if (play.of_program()) return program_loses_release(play);
  Verdict verdict{HazardOutcome::safe, "it sends no command"};
  for (int place = 1, places = 1; place <= places; ++place) {
    Actor& holder = play.client("holder");
    Actor& successor = play.client("successor");
    holder.warm_up();
    places = holder.release_commands();
    if (places == 0) break;
    play.change_key();
    const Grant held = holder.must_acquire();
    holder.arm(CommandFault::Action::drop_answer, CommandFault::Place::after, place);
    holder.release(held);
    const Grant next = successor.acquire(std::chrono::seconds(1));
    require_release(holder.release(held));
    if (!next.granted()) continue;  // that command does not release the lock
    verdict = verdict_of_release(play, "successor");
    if (verdict.outcome != HazardOutcome::safe) {
      verdict.reason += fmt::format(" (answer to command {} of {} lost)", place, places);
      return verdict;
    }
  }
  return verdict;
}

/// Two clients find the lock expired. One stalls before its GETSET, the other takes over the lock.
/// Then the late GETSET overwrites the winner's expiry.
Verdict getset_rewrite(Play& play) {
  Actor& first = play.client("first");
  Actor& loser = play.client("loser");
  Actor& winner = play.client("winner");
  const Grant held = first.must_acquire();
  first.kill();
  play.wait_until(held.valid_until.value_or(held.answered_at) + std::chrono::milliseconds(50));
  play.set_ttl(kLongTtl);
  loser.arm(CommandFault::Action::stall, CommandFault::Place::before,
            play.declared_acquire_commands());
  loser.start_acquire({});
  loser.await_stop();
  // Expiries have millisecond resolution: the winner's must differ.
  play.wait_until(PlayClock::now() + std::chrono::milliseconds(5));
  const Grant won = winner.must_acquire();
  const std::string before = play.store().value_of(play.key());
  loser.resume();
  const Grant lost = loser.finish_acquire();
  if (lost.granted()) return verdict_of_two(play, lost, "a GETSET came late");
  const std::string after = play.store().value_of(play.key());
  if (after == before) throw Failure("the loser's late GETSET did not change the expiry");
  play.note("drift_milliseconds", std::int64_t{std::stoll(after) - std::stoll(before)});
  require_release(winner.release(won));
  const Grant next = play.client("next").acquire(std::chrono::seconds(1));
  if (next.granted()) {
    return {HazardOutcome::safe,
            "the loser changed the expiry (see drift_milliseconds); the holder could still "
            "release its lock"};
  }
  return {HazardOutcome::stuck,
          "the loser changed the expiry, and the holder could no longer release its lock"};
}

using testbed::ProxyCounts;

/// Waits until the proxy has been idle for 200 ms: everything in flight has arrived.
ProxyCounts await_silence(testbed::Line& line) {
  ProxyCounts counts = line.counts();
  const auto give_up_at = PlayClock::now() + std::chrono::seconds(5);
  for (int silent = 0; silent < 20 && PlayClock::now() < give_up_at; ++silent) {
    PlayClock::sleep_for(std::chrono::milliseconds(10));
    const ProxyCounts now = line.counts();
    if (now.to_client != counts.to_client || now.accepted < 2) silent = 0;
    counts = now;
  }
  return counts;
}

/// The waiter listens on its newest connection.
Verdict lost_notification(Play& play) {
  play.set_ttl(std::chrono::seconds(3));
  Actor& holder = play.client("holder", {.wait = "notify"});
  Actor& waiter = play.client("waiter", {.behind_line = true, .wait = "notify"});
  const Grant held = holder.must_acquire();
  waiter.start_acquire(play.stuck_after());
  waiter.await_waiting();
  testbed::Line& line = *waiter.lines().front();
  line.black_hole({.number = await_silence(line).accepted});
  play.record_fault("the waiter's notification connection is cut silently");
  const TimePoint released_at = PlayClock::now();
  require_release(holder.release(held));
  if (!comes_true(kReachesWithin, [&] { return line.counts().swallowed > 0; })) {
    throw Failure("no notification was sent, so none was lost");
  }
  // Without a notification, the waiter tries again when the lock that it saw must have expired, or
  // when its session finds the connection dead: at most one TTL, plus a margin for a busy machine.
  return verdict_of_return(play, waiter.finish_acquire(), released_at, play.ttl() * 3 / 2);
}

const ScenarioRegistration lost_answers_scenarios({
    {.name = "lost-answer-acquire",
     .question = "The answer to an acquisition is lost, the client retries: does it recognise its "
                 "own lock?",
     .play = lost_answer_acquire},
    {.name = "lost-answer-release",
     .question =
         "The answer to a release is lost, the client repeats it: does it free another's lock?",
     .play = lost_answer_release},
    {.name = "getset-rewrite",
     .question = "A losing client's late GETSET changes the expiry: can the holder still release?",
     .exempts = only_if(
         [](const Descriptor& one) { return one.traits.release_check == OwnerCheck::local_clock; },
         "its value contains no expiry time"),
     .play = getset_rewrite},
    {.name = "lost-notification",
     .question = "The notification for a waiter is lost: does it get the lock within a bound?",
     .default_outcome = HazardOutcome::recovers,
     .exempts = [](const Descriptor& strategy) -> std::optional<std::string> {
       const auto& ways = strategy.traits.waiting_choices;
       const bool listens = std::ranges::find(ways, WaitKind::notify) != ways.end();
       if (listens || strategy.traits.waiting.kind == WaitKind::notify) return std::nullopt;
       return "its waiters do not listen for notifications";
     },
     .play = lost_notification},
});

}  // namespace
}  // namespace lockbench::hazards
