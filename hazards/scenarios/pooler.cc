#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

// A pooler gives each transaction of a client the server session that was used last. A lock that
// belongs to a session stays behind in it.

std::optional<Verdict> refusal_of(const Grant& held) {
  if (held.outcome == AcquireOutcome::refused) {
    return Verdict{HazardOutcome::refused, held.reason};
  }
  if (!held.granted()) throw Failure("the holder did not get the lock: " + held.reason);
  return std::nullopt;
}

/// Somebody's transaction is on the holder's session when the holder releases, so the release goes
/// to another one.
Verdict leaked_lock(Play& play) {
  play.set_ttl(kLongTtl);
  Actor& holder = play.client("holder");
  const Grant held = holder.acquire(std::chrono::seconds(5));
  if (auto refusal = refusal_of(held)) return *std::move(refusal);
  play.store().begin_transaction();
  play.record_fault("another client opens a transaction: the pooler gives it the last session");
  const ReleaseOutcome released = holder.release(held);
  require_release(released);
  play.note("release_found_the_lock", released == ReleaseOutcome::released);
  const Grant next = play.client("next").acquire(std::chrono::seconds(2));
  if (!play.store().commit_transaction()) throw Failure("the other transaction was lost");
  require_answer(next);
  if (next.granted()) {
    return {HazardOutcome::safe, "the release found its lock, and the next client got it"};
  }
  return {HazardOutcome::stuck,
          "the lock stayed behind in a session of the pool: its release went to another session, "
          "and no client gets the lock"};
}

Verdict strangers_reentry(Play& play) {
  play.set_ttl(kLongTtl);
  Actor& holder = play.client("holder");
  const Grant held = holder.acquire(std::chrono::seconds(5));
  if (auto refusal = refusal_of(held)) return *std::move(refusal);
  const Grant second = play.client("second").acquire(std::chrono::seconds(1));
  return verdict_of_two(play, second, "the pooler gave both clients the same session");
}

std::optional<std::string> only_with_a_pooler(const Descriptor& strategy) {
  if (!store_traits(strategy.backend).transactions) return "its store has no transaction pooler";
  if (!strategy.traits.ends_with_connection) return "its lock does not belong to a session";
  return std::nullopt;
}

const ScenarioRegistration pooler_leaked_lock_scenario({
    .name = "pooler-leaked-lock",
    .question =
        "A transaction pooler sends the release to another session: is the lock left behind?",
    .setup = Setup::pooled,
    .exempts = only_with_a_pooler,
    .play = leaked_lock,
});

const ScenarioRegistration pooler_reentry_scenario({
    .name = "pooler-reentry",
    .question = "A transaction pooler gives a second client the holder's session: do both hold it?",
    .setup = Setup::pooled,
    .exempts = only_with_a_pooler,
    .play = strangers_reentry,
});

}  // namespace
}  // namespace lockbench::hazards
