#include <fmt/format.h>

#include <optional>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

// Requests that end without success, or without their answer: what do they leave behind?

constexpr std::chrono::seconds kSoon{1};

/// When the holder releases while a waiter's time runs out.
struct Crossing {
  Duration after_deadline{};  ///< negative: before it
  bool waiter_stopped;        ///< until after the deadline and the release, so that it sees both
};

/// Nothing if the lock is free afterwards: released by the waiter, or never its own.
std::optional<Verdict> cross(Play& play, Actor& holder, Actor& waiter, Actor& third,
                             const Crossing& crossing) {
  // A client program is known to wait after 100 ms.
  constexpr std::chrono::milliseconds kWait{400}, kMargin{150};
  const Grant held = holder.must_acquire();
  const TimePoint deadline = PlayClock::now() + kWait;
  waiter.start_acquire(kWait);
  waiter.await_waiting();
  if (crossing.waiter_stopped) waiter.stop();
  play.wait_until(deadline + crossing.after_deadline);
  require_release(holder.release(held));
  if (crossing.waiter_stopped) {
    play.wait_until(deadline + kMargin);
    waiter.resume();
  }
  const Grant late = waiter.finish_acquire();
  if (late.granted()) {
    require_release(waiter.release(late));
    return std::nullopt;
  }
  const Grant next = third.acquire(kSoon);
  if (!next.granted()) {
    return Verdict{HazardOutcome::stuck,
                   fmt::format("a client gave up while the lock was released, {} its deadline, and "
                               "left it taken",
                               crossing.after_deadline < Duration::zero() ? "before" : "after")};
  }
  require_release(third.release(next));
  return std::nullopt;
}

/// The store grants the lock in the moment in which a waiter's time runs out.
Verdict timeout_but_granted(Play& play) {
  using std::chrono::milliseconds;
  constexpr Crossing kCrossings[] = {{milliseconds(-150), true}, {milliseconds(20), true},
                                     {milliseconds(-3), false},  {milliseconds(-1), false},
                                     {milliseconds(0), false},   {milliseconds(1), false}};
  play.set_ttl(kLongTtl);
  Actor& holder = play.client("holder");
  Actor& waiter = play.client("waiter");
  Actor& third = play.client("third");
  waiter.warm_up();
  for (const Crossing& crossing : kCrossings) {
    if (auto verdict = cross(play, holder, waiter, third, crossing)) return *std::move(verdict);
  }
  return {HazardOutcome::safe,
          "each time the waiter got the lock late and released it, or left nothing behind"};
}

/// The visitor does not wait, or waits in vain.
Verdict refused_residue(Play& play) {
  play.set_ttl(kLongTtl);
  Actor& holder = play.client("holder");
  Actor& visitor = play.client("visitor");
  Actor& next = play.client("next");
  const Grant held = holder.must_acquire();
  constexpr std::chrono::milliseconds kWaits[] = {
      std::chrono::milliseconds(0), std::chrono::milliseconds(0), std::chrono::milliseconds(200)};
  for (const Duration wait : kWaits) {
    const Grant refused = visitor.acquire(wait);
    if (refused.granted()) return verdict_of_two(play, refused, "without any fault");
  }
  require_release(holder.release(held));
  const Grant first = next.acquire(kSoon);
  play.note("next_waited_seconds", first.answered_at - first.asked_at);
  if (!first.granted()) {
    return {HazardOutcome::stuck,
            "what a refused client left behind keeps the free lock from the next one"};
  }
  require_release(next.release(first));
  if (!visitor.acquire(kSoon).granted()) {
    return {HazardOutcome::stuck,
            "the client that was refused does not get the free lock afterwards"};
  }
  return {HazardOutcome::safe, "the refusals left nothing behind: both clients got the free lock"};
}

constexpr std::chrono::seconds kPatience{3};

/// An application gives up its release, as a web server does with a request that takes too long,
/// and releases again in its clean-up.
Verdict program_cancels_release(Play& play) {
  constexpr std::chrono::milliseconds kLimit{200};
  Actor& holder = play.client("holder", {.behind_line = true});
  Actor& next = play.client("next");
  const Grant held = holder.must_acquire();
  for (const auto& line : holder.lines()) line->black_hole();
  play.record_fault("the network loses all that the holder sends");
  const ReleaseOutcome cancelled = holder.cancelled_release(held, kLimit);
  for (const auto& line : holder.lines()) line->heal();
  play.record_fault("the holder's connection is restored");
  const ReleaseOutcome again = holder.release(held);
  play.note("release_was_lost", cancelled == ReleaseOutcome::failed);
  if (next.acquire(kPatience).granted()) {
    return {HazardOutcome::safe, "the next client got the lock after the second release"};
  }
  return {HazardOutcome::stuck,
          fmt::format("after a cancelled release, another release {} the lock, and it stays taken "
                      "until it expires",
                      again == ReleaseOutcome::not_owner ? "does not know" : "does not free")};
}

/// lockbench's own releases are cancelled by a lost answer: to each of their commands in turn.
Verdict cancelled_release(Play& play) {
  play.set_ttl(kLongTtl);
  if (play.of_program()) return program_cancels_release(play);
  for (int place = 1, places = 1; place <= places; ++place) {
    Actor& holder = play.client("holder");
    Actor& next = play.client("next");
    holder.warm_up();
    places = holder.release_commands();
    if (places == 0) break;
    play.change_key();
    const Grant held = holder.must_acquire();
    holder.arm(CommandFault::Action::drop_answer, CommandFault::Place::after, place);
    holder.release(held);
    const ReleaseOutcome again = holder.release(held);
    if (next.acquire(kPatience).granted()) continue;
    return {
        HazardOutcome::stuck,
        fmt::format("the answer to command {} of {} of the release was lost; another release {} "
                    "the lock, and it stays taken until it expires",
                    place, places,
                    again == ReleaseOutcome::not_owner ? "does not know" : "does not free")};
  }
  return {HazardOutcome::safe, "the next client got the lock after the second release"};
}

const ScenarioRegistration cancellations_scenarios({
    {.name = "timeout-but-granted",
     .question = "A waiter's time runs out just when the store grants: does the lock stay taken?",
     .play = timeout_but_granted},
    {.name = "refused-residue",
     .question = "A client is refused, then the lock is freed: does the next one get it at once?",
     .quick = true,
     .play = refused_residue},
    {.name = "cancelled-release",
     .question = "A release is cancelled and tried again: does the lock become free?",
     .quick = true,
     .play = cancelled_release},
});

}  // namespace
}  // namespace lockbench::hazards
