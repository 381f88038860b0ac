#include "hazards/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace lockbench::hazards {

std::string milliseconds(Duration duration) {
  return fmt::format("{} ms", std::chrono::round<std::chrono::milliseconds>(duration).count());
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

Verdict verdict_of_release(Play& play, std::string_view owner) {
  const Grant third = play.client("third").acquire();
  if (third.granted()) {
    return {HazardOutcome::foreign_release,
            fmt::format("the release freed the lock of the {0}: a third client got the lock while "
                        "the {0} still held it",
                        owner)};
  }
  return {HazardOutcome::safe, fmt::format("the {} still held its lock afterwards", owner)};
}

Verdict verdict_of_two(Play& play, const Grant& contender, std::string_view why) {
  play.note("second_granted", contender.granted());
  if (contender.granted()) {
    return {HazardOutcome::double_grant,
            fmt::format("{}: a second client got the lock while the first one still used it", why)};
  }
  return {HazardOutcome::safe,
          fmt::format("{}: no other client got the lock while its holder used it", why)};
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

}  // namespace lockbench::hazards
