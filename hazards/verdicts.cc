#include "hazards/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

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

std::string milliseconds(Duration duration) {
  return fmt::format("{} ms", std::chrono::round<std::chrono::milliseconds>(duration).count());
}

void require_answer(const Grant& grant) {
  if (grant.outcome != AcquireOutcome::failed && grant.outcome != AcquireOutcome::unknown) return;
  throw Failure("the store gave an acquisition no answer: " + grant.reason);
}

void require_release(ReleaseOutcome outcome) {
  if (outcome != ReleaseOutcome::failed) return;
  throw Failure("a release did not reach the store");
}

void require_late_release(Actor& holder, const Grant& held, ReleaseOutcome outcome) {
  if (outcome == ReleaseOutcome::failed) outcome = holder.release(held);
  require_release(outcome);
}

Verdict verdict_of_return(Play& play, const Grant& grant, TimePoint since) {
  require_answer(grant);
  if (!grant.granted()) {
    return {
        HazardOutcome::stuck,
        fmt::format("no client got the lock, although one kept asking for {} after the last grant",
                    milliseconds(grant.answered_at - since))};
  }
  const Duration took = grant.answered_at - since;
  if (took < Duration::zero()) {
    throw Failure("the next client got the lock before it could become free");
  }
  play.note("recovery_seconds", took);
  return {HazardOutcome::recovers,
          fmt::format("the next client got the lock after {}", milliseconds(took))};
}

Verdict verdict_of_return(Play& play, const Grant& grant, TimePoint since, Duration bound) {
  play.note("bound_seconds", bound);
  Verdict verdict = verdict_of_return(play, grant, since);
  if (verdict.outcome != HazardOutcome::recovers) return verdict;
  const bool in_time = grant.answered_at - since <= bound;
  verdict.reason += fmt::format(
      ", {} {}", in_time ? "within the bound of" : "later than the bound of", milliseconds(bound));
  return {in_time ? HazardOutcome::recovers : HazardOutcome::stuck, verdict.reason};
}

Grant take_over(Play& play, Actor& holder, const Grant& held, Actor& second) {
  const Duration wait = play.stuck_after();
  holder.stop();
  await_expiry(play, held);
  play.set_ttl(kLongTtl);
  Grant grant = second.acquire(wait);
  require_answer(grant);
  return grant;
}

Verdict verdict_of_release(Play& play, std::string_view owner) {
  const Grant third = play.client("third").acquire();
  require_answer(third);
  if (third.granted()) {
    return {HazardOutcome::foreign_release,
            fmt::format("the release freed the lock of the {0}: a third client got the lock while "
                        "the {0} still held it",
                        owner)};
  }
  return {HazardOutcome::safe, fmt::format("the {} still held its lock afterwards", owner)};
}

Verdict verdict_of_two(Play& play, const Grant& contender, std::string_view why) {
  require_answer(contender);
  play.note("second_granted", contender.granted());
  if (contender.granted()) {
    return {HazardOutcome::double_grant,
            fmt::format("{}: a second client got the lock while the first one still used it", why)};
  }
  return {HazardOutcome::safe,
          fmt::format("{}: no other client got the lock while its holder used it", why)};
}

Verdict while_held(Play& play, const std::function<void(PrivateStore&)>& fault,
                   std::string_view what, const ActorSettings& settings) {
  play.set_ttl(kLongTtl);
  Actor& holder = play.client("holder", settings);
  const Grant held = holder.acquire(std::chrono::seconds(5));
  if (held.outcome == AcquireOutcome::refused) {
    return {HazardOutcome::refused, "the lock is not granted, as a failover could lose it"};
  }
  if (!held.granted()) throw Failure("the holder did not get the lock: " + held.reason);
  const TimePoint struck_at = BootClock::now();
  fault(play.store());
  play.record_fault(std::string(what));
  const Grant second = play.client("second", settings).acquire(std::chrono::seconds(2));
  if (second.granted() && held.valid_until) {
    require_in_time("after the fault, the second client got the lock", *held.valid_until,
                    second.answered_at, {});
  }
  if (second.granted()) record_belief_gap(play, holder, held, struck_at);
  return verdict_of_two(play, second, what);
}

std::optional<std::string> only_for_quorums(const Descriptor& strategy) {
  if (strategy.traits.nodes > 1) return std::nullopt;
  return "the lock does not use several independent nodes";
}

std::optional<std::string> only_with_connections(const Descriptor& strategy) {
  if (!store_traits(strategy.backend).servers) return "it has no connections";
  return std::nullopt;
}

std::optional<Duration> record_belief_gap(Play& play, Actor& holder, const Grant& held,
                                          TimePoint lost_at) {
  // A third of kLongTtl and a margin: a renewal has happened by then.
  constexpr std::chrono::seconds kRenewalWait{8};
  Belief belief = holder.belief(held);
  play.note("holder_still_believes", belief.valid);
  const bool prolonged = play.traits().renews || play.traits().expiry == Expiry::session;
  if (prolonged && belief.valid && belief.until) {
    const TimePoint before = *belief.until;
    belief = holder.belief(held, kRenewalWait);
    const bool renewed = belief.valid && (!belief.until || *belief.until > before);
    if (renewed) return std::nullopt;  // no end known
  }
  if (!belief.until) return std::nullopt;
  const Duration gap = *belief.until - lost_at;
  play.note("belief_gap_seconds", gap);
  return gap;
}

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
