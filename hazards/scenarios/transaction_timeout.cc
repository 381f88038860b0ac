#include <fmt/format.h>

#include <future>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

constexpr std::chrono::seconds kLimit{2};

/// The waiter has a transaction open in the store beside its wait, which outlasts the limit.
Verdict wait_in_transaction(Play& play, Limit limit, std::string_view called) {
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
  const Duration took = waited.answered_at - waited.asked_at;
  if (took < kLimit) need_answer(waited);
  play.note("waited_seconds", took);
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

/// The wait is a statement of the transaction itself.
Verdict wait_inside(Play& play, Limit limit, std::string_view called) {
  play.ask_for_ttl(kLongTtl);
  play.stage().limit(limit, kLimit);
  play.tell(fmt::format("{} are ended after {} s", called, kLimit.count()));
  Actor& holder = play.client("holder");
  const Grant held = holder.hold();
  play.stage().begin_transaction();
  constexpr std::string_view kWaiter = "waiter";
  play.timeline().add_now(std::string(kWaiter), "opens a transaction, and waits inside it");
  const TimePoint asked_at = std::chrono::steady_clock::now();
  auto waiting =
      std::async(std::launch::async, [&] { return play.stage().wait_in_transaction(play.key()); });
  const bool outlasts = waiting.wait_for(2 * kLimit) == std::future_status::timeout;
  if (outlasts) holder.release(held);
  const auto waited = waiting.get();
  const Duration took = std::chrono::steady_clock::now() - asked_at;
  if (!waited && took < kLimit) {
    throw StageFailure("the wait ended before its limit: " + waited.error());
  }
  play.note("waited_seconds", took);
  play.timeline().add_now(std::string(kWaiter),
                          waited ? "has the lock" : "waits no longer: " + waited.error());
  const bool committed = play.stage().commit_transaction();
  play.timeline().add_now(
      std::string(kWaiter),
      committed ? "commits its transaction" : "has lost its transaction: it is rolled back");
  play.note("transaction_committed", committed);
  play.note("wait_ended_by_limit", !waited);
  if (waited && !outlasts) {
    return {HazardOutcome::double_grant,
            "the holder's lock is a transaction that does nothing while its holder works: the "
            "server ended it, and the one that waited got the lock"};
  }
  if (!waited || !committed) {
    return {HazardOutcome::unavailable,
            fmt::format("the transaction that waited {}: {}",
                        committed ? "went on without the lock" : "is rolled back with all its work",
                        waited ? "it was ended after its wait" : waited.error())};
  }
  return {HazardOutcome::safe,
          "a transaction that waits is not idle: it got the lock after its holder, and went on"};
}

std::optional<std::string> without_waits(const Descriptor& strategy) {
  if (strategy.backend != "postgres") return "its store has no transactions that could wait";
  if (strategy.traits.expiry == Expiry::session) return std::nullopt;
  return "its waiters ask again and again: no transaction waits at the server";
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
        [](Play& play) {
          return wait_in_transaction(play, Limit::statement, "long statements");
        },
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

const ScenarioRegistration inside_statement({
    .name = "transaction-timeout-inside-statement",
    .question = "A transaction's own wait outlasts statement_timeout: does the transaction go on?",
    .ground = Ground::durable,
    .exempts = without_waits,
    .play =
        [](Play& play) { return wait_inside(play, Limit::statement, "long statements"); },
});

const ScenarioRegistration inside_lock({
    .name = "transaction-timeout-inside-lock",
    .question = "A transaction's own wait outlasts lock_timeout: does the transaction go on?",
    .ground = Ground::durable,
    .exempts = without_waits,
    .play =
        [](Play& play) { return wait_inside(play, Limit::lock_wait, "waits for locks"); },
});

const ScenarioRegistration inside_idle({
    .name = "transaction-timeout-inside-idle",
    .question =
        "A transaction's own wait outlasts idle_in_transaction_session_timeout: does it go on?",
    .ground = Ground::durable,
    .exempts = without_waits,
    .play =
        [](Play& play) {
          return wait_inside(play, Limit::idle_transaction, "idle transactions");
        },
});

}  // namespace
}  // namespace lockbench::hazards
