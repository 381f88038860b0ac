#include "hazards/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

Verdict verdict_of_return(Play& play, const Grant& grant, TimePoint since,
                          std::optional<Duration> bound) {
  if (bound) play.note("bound_seconds", *bound);
  const Duration took = grant.answered_at - since;
  if (!grant.granted()) {
    return {
        HazardOutcome::stuck,
        fmt::format("no client got the lock, although one kept asking for {} after the last grant",
                    milliseconds(took))};
  }
  if (took < Duration::zero()) {
    throw Failure("the next client got the lock before it could become free");
  }
  play.note("recovery_seconds", took);
  std::string reason = fmt::format("the next client got the lock after {}", milliseconds(took));
  if (!bound) return {HazardOutcome::recovers, std::move(reason)};
  const bool in_time = took <= *bound;
  reason += fmt::format(", {} {}", in_time ? "within the bound of" : "later than the bound of",
                        milliseconds(*bound));
  return {in_time ? HazardOutcome::recovers : HazardOutcome::stuck, std::move(reason)};
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

std::optional<Duration> record_belief_gap(Play& play, Actor& holder, const Grant& held,
                                          TimePoint lost_at) {
  // A third of kLongTtl and a margin: by then a renewal has happened.
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

Grant acquire_at_last(Actor& client, Duration wait, Duration patience) {
  constexpr std::chrono::milliseconds kPause{10};
  const TimePoint deadline = PlayClock::now() + patience;
  Grant grant = client.try_acquire(wait);
  while (grant.unanswered()) {
    const Duration left = deadline - PlayClock::now();
    if (left <= Duration::zero()) break;
    PlayClock::sleep_for(kPause);
    grant = client.try_acquire(std::min(wait, left));
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

std::optional<std::string> only_for_clusters(const Descriptor& strategy) {
  const auto* const kind = deployment::find_private_store_kind(strategy.backend);
  if (kind != nullptr && kind->clusters) return std::nullopt;
  return "its servers do not vote";
}

}  // namespace lockbench::hazards
