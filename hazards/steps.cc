#include "hazards/steps.h"

#include <fmt/format.h>

namespace lockbench::hazards {

std::string milliseconds(Duration duration) {
  return fmt::format("{} ms", std::chrono::round<std::chrono::milliseconds>(duration).count());
}

void need_answer(const Grant& grant) {
  if (grant.outcome != AcquireOutcome::failed && grant.outcome != AcquireOutcome::unknown) return;
  throw StageFailure("the store gave an acquisition no answer: " + grant.reason);
}

void need_release(ReleaseOutcome outcome) {
  if (outcome != ReleaseOutcome::failed) return;
  throw StageFailure("a release did not reach the store");
}

void need_late_release(Actor& holder, const Grant& held, ReleaseOutcome outcome) {
  if (outcome == ReleaseOutcome::failed) outcome = holder.release(held);
  need_release(outcome);
}

Verdict verdict_of_return(Play& play, const Grant& grant, TimePoint since) {
  need_answer(grant);
  if (!grant.granted()) {
    return {HazardOutcome::stuck,
            fmt::format("nobody got the lock, though somebody kept asking for "
                        "{} after it was held for the last time",
                        milliseconds(grant.answered_at - since))};
  }
  const Duration took = grant.answered_at - since;
  if (took < Duration::zero()) {
    throw StageFailure("the next client got the lock before it was to become free");
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
  verdict.reason +=
      fmt::format(", {} {}", in_time ? "within" : "and not within", milliseconds(bound));
  return {in_time ? HazardOutcome::recovers : HazardOutcome::stuck, verdict.reason};
}

Grant overtake(Play& play, Actor& holder, Actor& second) {
  const Duration wait = play.patience();
  holder.stop();
  play.ask_for_ttl(kLongTtl);
  Grant grant = second.acquire(wait);
  need_answer(grant);
  return grant;
}

Verdict verdict_of_release(Play& play, std::string_view owner) {
  const Grant third = play.client("third").acquire();
  need_answer(third);
  if (third.granted()) {
    return {HazardOutcome::foreign_release,
            fmt::format("the release freed the lock of the {}: a third client got it at once while "
                        "the {} still held it",
                        owner, owner)};
  }
  return {HazardOutcome::safe, fmt::format("the {} still held its lock afterwards", owner)};
}

Verdict verdict_of_two(Play& play, const Grant& contender, std::string_view why) {
  need_answer(contender);
  play.note("second_granted", contender.granted());
  if (contender.granted()) {
    return {HazardOutcome::double_grant,
            fmt::format(
                "{}: a second client was granted the lock while the first was still at work", why)};
  }
  return {HazardOutcome::safe,
          fmt::format("{}: nobody else got the lock while its holder was at work", why)};
}

Verdict while_held(Play& play, const std::function<void(Stage&)>& fault, std::string_view what,
                   const ActorSettings& settings) {
  play.ask_for_ttl(kLongTtl);
  Actor& holder = play.client("holder", settings);
  const Grant held = holder.acquire(std::chrono::seconds(5));
  if (held.outcome == AcquireOutcome::refused) {
    return {HazardOutcome::refused, "no lock is granted that might be lost with the server"};
  }
  if (!held.granted()) throw StageFailure("the holder was to get the lock: " + held.reason);
  const TimePoint struck_at = std::chrono::steady_clock::now();
  fault(play.stage());
  play.tell(std::string(what));
  const Grant second = play.client("second", settings).acquire(std::chrono::seconds(2));
  if (second.granted() && held.valid_until && second.answered_at > *held.valid_until) {
    throw StageFailure("the fault took longer than the lock lasts");
  }
  if (second.granted()) note_belief_gap(play, holder, held, struck_at);
  return verdict_of_two(play, second, what);
}

std::optional<std::string> unless_on_several_nodes(const Descriptor& strategy) {
  if (strategy.traits.nodes > 1) return std::nullopt;
  return "it does not live on several independent nodes";
}

ActorSettings watchful() { return {.wait = "poll:1ms"}; }

void note_belief_gap(Play& play, Actor& holder, const Grant& held, TimePoint lost_at) {
  // A third of the longest TTL, and a little: what prolongs a lease has come by then.
  constexpr std::chrono::seconds kRenewalComes{8};
  Belief belief = holder.belief(held);
  play.note("holder_still_believes", belief.valid);
  const bool prolonged = play.traits().renews || play.traits().expiry == Expiry::session;
  if (prolonged && belief.valid && belief.until) {
    const TimePoint before = *belief.until;
    belief = holder.belief(held, kRenewalComes);
    if (belief.valid && (!belief.until || *belief.until > before)) return;  // it goes on
  }
  if (belief.until) play.note("belief_gap_seconds", *belief.until - lost_at);
}

}  // namespace lockbench::hazards
