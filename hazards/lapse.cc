#include "hazards/lapse.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// Whether the client keeps its lock for as long as it lives and reaches the store.
bool is_renewed(const Traits& traits) {
  return traits.renews || (traits.expiry == Expiry::session && !traits.ends_with_connection);
}

/// A cluster that elects another leader answers nobody meanwhile: the client goes on asking.
Grant acquire_at_last(Actor& client, Duration wait) {
  const TimePoint deadline = BootClock::now() + wait;
  Grant grant = client.acquire(wait);
  while (grant.outcome == AcquireOutcome::failed || grant.outcome == AcquireOutcome::unknown) {
    const Duration left = deadline - BootClock::now();
    if (left <= Duration::zero()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    grant = client.acquire(left);
  }
  require_answer(grant);
  return grant;
}

Verdict verdict_of_belief(Play& play, Actor& holder, const Grant& held, const Grant& next,
                          std::string_view what) {
  const auto gap = record_belief_gap(play, holder, held, next.answered_at);
  if (gap && *gap <= Duration::zero()) {
    return {HazardOutcome::known_loss,
            fmt::format("{}: the holder had stopped treating the lock as its own before a second "
                        "client got it",
                        what)};
  }
  return {HazardOutcome::double_grant,
          fmt::format("{}: a second client got the lock while the first one still treated it as "
                      "its own",
                      what)};
}

/// The holder writes, however late.
Verdict verdict_of_write(Play& play, Actor& holder, const Grant& held, const Grant& next,
                         bool rejected, std::string_view what) {
  const loadgen::WriteResult written = holder.write(held);
  const std::uint64_t lost = play.accepted_writes() - play.counter();
  play.note("lost_updates", static_cast<std::int64_t>(lost));
  if (lost > 0) {
    return {HazardOutcome::lost_update,
            fmt::format("{}: it wrote a value based on an old read, and the second client's update "
                        "was lost",
                        what)};
  }
  if (rejected) {
    return {HazardOutcome::unavailable,
            fmt::format("the counter rejects the rightful holder: its fencing number is {}, the "
                        "first holder's was {}",
                        next.fencing.value_or(0), held.fencing.value_or(0))};
  }
  if (written != loadgen::WriteResult::rejected_stale) {
    throw Failure("the late write was accepted, but no update was lost");
  }
  return {HazardOutcome::safe, "the counter rejected the late write by its fencing number"};
}

}  // namespace

Verdict play_lapse(Play& play, const Lapse& lapse) {
  Actor& holder = play.client("holder", {.behind_line = lapse.behind_line,
                                         .checks_fencing = lapse.fenced,
                                         .members = lapse.holders_members});
  // Its grant shows when the store gave up the lock. Strategies that queue are woken instead.
  Actor& second = play.client(
      "second",
      {.checks_fencing = lapse.fenced, .wait = "poll:1ms", .members = lapse.seconds_members});
  const Grant held = holder.must_acquire();
  holder.read(held);
  if (lapse.begin) lapse.begin(holder);
  if (lapse.contends) {
    require_in_time("the second client's turn came", held.answered_at, BootClock::now(),
                    play.ttl() / 2);
  } else {
    await_expiry(play, held);
  }
  const Grant next = acquire_at_last(second, std::max(play.stuck_after(), lapse.patience));
  play.note("second_granted", next.granted());
  Verdict verdict;
  if (next.granted() && lapse.looks) {
    verdict = verdict_of_belief(play, holder, held, next, lapse.what);
  }
  bool rejected = false;
  if (next.granted() && !lapse.looks) {
    second.read(next);
    rejected = second.write(next) != loadgen::WriteResult::accepted;
  }
  if (lapse.end) {
    play.wait_until(held.answered_at + 2 * play.ttl());
    lapse.end(holder);
  }
  if (!next.granted()) {
    if (!lapse.begin && is_renewed(play.traits())) {
      return {HazardOutcome::safe, "renewal kept the lock while its holder used it"};
    }
    return not_run_out(lapse.what);
  }
  if (lapse.looks) return verdict;
  return verdict_of_write(play, holder, held, next, rejected, lapse.what);
}

void await_expiry(const Play& play, const Grant& held) {
  // A contender that asks a moment too early may prolong the lock, or start to wait.
  const Duration margin = play.ttl() / 4;
  const TimePoint end = held.answered_at + play.ttl();
  play.wait_until(std::max(end, held.valid_until.value_or(end)) + margin);
}

Verdict not_run_out(std::string_view meanwhile) {
  return {HazardOutcome::not_applicable,
          fmt::format("the lock did not run out: {}, and nobody else got it", meanwhile)};
}

}  // namespace lockbench::hazards
