#include <fmt/format.h>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// The waiter has a transaction open in the store beside its wait, which outlasts the limit.
Verdict wait_in_transaction(Play& play, Limit limit, std::string_view called) {
  constexpr std::chrono::seconds kLimit{2};
  play.ask_for_ttl(kLongTtl);
  play.stage().limit(limit, kLimit);
  play.tell(fmt::format("{} are ended after {} s", called, kLimit.count()));
  Actor& holder = play.client("holder");
  Actor& waiter = play.client("waiter");
  const Grant held = holder.hold();
  play.stage().begin_transaction();
  play.timeline().add_now(waiter.name(), "opens a transaction beside the lock");
  const Grant waited = waiter.acquire(2 * kLimit);
  const bool committed = play.stage().commit_transaction();
  play.timeline().add_now(waiter.name(), committed ? "commits its transaction"
                                                   : "has lost its transaction: it was ended");
  play.note("transaction_committed", committed);
  play.note("waited_seconds", waited.answered_at - waited.asked_at);
  if (waited.granted()) {
    note_belief_gap(play, holder, held, waited.answered_at);
    return {HazardOutcome::double_grant,
            "the holder's lock is a transaction that does nothing while its holder works: the "
            "server ended it, and a second client got the lock"};
  }
  if (waited.outcome == AcquireOutcome::failed || waited.outcome == AcquireOutcome::unknown) {
    return {HazardOutcome::unavailable,
            "the wait is a statement, which the server ended: " + waited.reason};
  }
  if (!committed) {
    return {HazardOutcome::unavailable,
            "the transaction that was open while its client waited was ended by the server"};
  }
  return {HazardOutcome::safe,
          "the wait is no statement of the transaction, which went on after it"};
}

std::optional<std::string> without_transactions(const Descriptor& strategy) {
  if (strategy.backend == "postgres") return std::nullopt;
  return "its store has no transactions that could wait";
}

const ScenarioRegistration statement({
    .name = "transaction-timeout-statement",
    .question = "A wait for the lock outlasts statement_timeout: do wait and transaction go on?",
    .ground = Ground::durable,
    .exempts = without_transactions,
    .play =
        [](Play& play) { return wait_in_transaction(play, Limit::statement, "long statements"); },
});

const ScenarioRegistration idle({
    .name = "transaction-timeout-idle",
    .question = "A wait for the lock outlasts idle_in_transaction_session_timeout: do both go on?",
    .ground = Ground::durable,
    .exempts = without_transactions,
    .play =
        [](Play& play) {
          return wait_in_transaction(play, Limit::idle_transaction, "idle transactions");
        },
});

}  // namespace
}  // namespace lockbench::hazards
