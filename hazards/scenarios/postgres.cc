#include <fmt/format.h>

#include <future>

#include "hazards/verdicts.h"
#include "strategies/thread.h"

namespace lockbench::hazards {
namespace {

// A pooler gives each transaction the server session that was used last. A lock that belongs to a
// session stays behind in it.

std::optional<Verdict> refusal_of(const Grant& held) {
  if (held.outcome == AcquireOutcome::refused) {
    return Verdict{HazardOutcome::refused, held.reason};
  }
  if (!held.granted()) throw Failure("the holder did not get the lock: " + held.reason);
  return std::nullopt;
}

/// When the holder releases, another client's transaction occupies its session, so the release goes
/// to another session.
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
  if (!store_traits(strategy.backend).poolers) return "its store has no transaction pooler";
  if (!strategy.traits.ends_with_connection) return "its lock does not belong to a session";
  return std::nullopt;
}

constexpr std::chrono::seconds kLimit{2};

/// The waiter keeps a transaction open in the database while it waits longer than the limit.
Verdict wait_in_transaction(Play& play, Limit limit, std::string_view called) {
  play.set_ttl(kLongTtl);
  play.store().limit(limit, kLimit);
  play.record_fault(fmt::format("the server ends {} after {} s", called, kLimit.count()));
  Actor& holder = play.client("holder");
  Actor& waiter = play.client("waiter");
  const Grant held = holder.must_acquire();
  play.store().begin_transaction();
  play.tell_now(waiter.name(), "opens a transaction next to the lock");
  const Grant waited = waiter.try_acquire(2 * kLimit);
  const bool committed = play.store().commit_transaction();
  play.tell_now(waiter.name(), committed ? "commits its transaction"
                                         : "has lost its transaction: the server ended it");
  play.note("transaction_committed", committed);
  const Duration took = waited.answered_at - waited.asked_at;
  if (took < kLimit) require_answer(waited);
  play.note("waited_seconds", took);
  if (waited.granted()) {
    record_belief_gap(play, holder, held, waited.answered_at);
    return {HazardOutcome::double_grant,
            "the holder's lock is a transaction that is idle while the holder works: the server "
            "ended it, and a second client got the lock"};
  }
  if (waited.unanswered()) {
    return {HazardOutcome::unavailable,
            "the wait is a statement, and the server ended it: " + waited.reason};
  }
  if (!committed) {
    return {HazardOutcome::unavailable,
            "the server ended the transaction that was open during the wait"};
  }
  return {HazardOutcome::safe,
          "the wait is not a statement of the transaction, which continued after it"};
}

/// The wait is a statement inside the transaction.
Verdict wait_inside(Play& play, Limit limit, std::string_view called) {
  play.set_ttl(kLongTtl);
  play.store().limit(limit, kLimit);
  play.record_fault(fmt::format("the server ends {} after {} s", called, kLimit.count()));
  Actor& holder = play.client("holder");
  const Grant held = holder.must_acquire();
  play.store().begin_transaction();
  const std::string waiter = "waiter";
  play.tell_now(waiter, "opens a transaction and waits inside it");
  const TimePoint asked_at = PlayClock::now();
  auto waiting = in_background([&] { return play.store().wait_in_transaction(play.key()); });
  const bool outlasts = waiting.wait_for(2 * kLimit) == std::future_status::timeout;
  if (outlasts) holder.release(held);
  const auto waited = waiting.get();
  const Duration took = PlayClock::now() - asked_at;
  if (!waited && took < kLimit) {
    throw Failure("the wait ended before its limit: " + waited.error());
  }
  play.note("waited_seconds", took);
  play.tell_now(waiter, waited ? "gets the lock" : "stops waiting: " + waited.error());
  const bool committed = play.store().commit_transaction();
  play.tell_now(waiter, committed ? "commits its transaction"
                                  : "has lost its transaction: it was rolled back");
  play.note("transaction_committed", committed);
  play.note("wait_ended_by_limit", !waited);
  if (waited && !outlasts) {
    return {HazardOutcome::double_grant,
            "the holder's lock is a transaction that is idle while the holder works: the server "
            "ended it, and the waiter got the lock"};
  }
  if (!waited || !committed) {
    return {HazardOutcome::unavailable,
            fmt::format("the waiting transaction {}: {}",
                        committed ? "continued without the lock" : "was rolled back",
                        waited ? "the server ended it after its wait" : waited.error())};
  }
  return {HazardOutcome::safe,
          "a transaction that waits is not idle: it got the lock after the holder and continued"};
}

/// The holder works elsewhere for longer than the server lets a session do nothing.
Verdict idle_session_timeout(Play& play) {
  constexpr std::chrono::seconds kIdle{1};
  play.set_ttl(kLongTtl);
  play.store().limit(Limit::idle_session, kIdle);
  play.record_fault("the server ends sessions that do nothing for a second");
  Actor& holder = play.client("holder");
  const Grant held = holder.must_acquire();
  const Grant second = play.client("second").acquire(3 * kIdle);
  if (second.granted()) record_belief_gap(play, holder, held, held.answered_at + kIdle);
  return verdict_of_two(play, second, "the holder's session did nothing while its holder worked");
}

/// The holder's work is a statement on a connection of its own: the server learns of the client's
/// death only when it sends the answer.
Verdict crash_work_continues(Play& play) {
  constexpr std::chrono::seconds kWork{4};
  Actor& holder = play.client("holder");
  Actor& next = play.client("next");
  holder.must_acquire();
  play.store().abandon_statement(play.key(), kWork);
  play.record_fault("the holder has sent a long statement on another connection, and dies");
  holder.kill();
  const Grant grant = next.acquire(kWork / 2);
  const bool runs = play.store().runs_statement(play.key());
  play.note("second_granted", grant.granted());
  play.note("work_still_runs", runs);
  if (!runs) throw Failure("the statement was over before the next client had its answer");
  if (grant.granted()) {
    return {HazardOutcome::double_grant,
            "the next client got the lock while the server still ran the dead holder's statement"};
  }
  return {HazardOutcome::safe, "no client got the lock while the dead holder's statement ran"};
}

std::optional<std::string> only_with_server_side_waits(const Descriptor& strategy) {
  if (!store_traits(strategy.backend).transactions) return "its store has no transactions";
  if (strategy.traits.waiting.kind == WaitKind::queue) return std::nullopt;
  return "its waiters poll: no transaction waits at the server";
}

const auto only_with_transactions =
    only_if([](const Descriptor& one) { return store_traits(one.backend).transactions; },
            "its store has no transactions");

std::optional<std::string> only_with_steady_sessions(const Descriptor& strategy) {
  if (auto reason = only_with_transactions(strategy)) return reason;
  if (!strategy.traits.observed) return std::nullopt;
  return "its candidates do nothing for longer between two looks at the record";
}

const ScenarioRegistration postgres_scenarios({
    {.name = "pooler-leaked-lock",
     .question =
         "A transaction pooler sends the release to another session: is the lock left behind?",
     .setup = Setup::pooled,
     .exempts = only_with_a_pooler,
     .play = leaked_lock},
    {.name = "pooler-reentry",
     .question =
         "A transaction pooler gives a second client the holder's session: do both hold it?",
     .setup = Setup::pooled,
     .exempts = only_with_a_pooler,
     .play = strangers_reentry},
    {.name = "idle-session-timeout",
     .question = "The server ends idle sessions while a holder works: do two hold the lock?",
     .setup = Setup::durable,
     .exempts = only_with_steady_sessions,
     .play = idle_session_timeout},
    {.name = "crash-work-continues",
     .question = "A holder dies while its statement runs at the server: is the lock free before?",
     .exempts = only_with_transactions,
     .play = crash_work_continues},
    {.name = "transaction-timeout-statement",
     .question =
         "A wait for the lock is longer than statement_timeout: does the transaction survive?",
     .setup = Setup::durable,
     .exempts = only_with_transactions,
     .play =
         [](Play& play) { return wait_in_transaction(play, Limit::statement, "long statements"); }},
    {.name = "transaction-timeout-idle",
     .question =
         "A wait is longer than idle_in_transaction_session_timeout: does the transaction survive?",
     .setup = Setup::durable,
     .exempts = only_with_transactions,
     .play =
         [](Play& play) {
           return wait_in_transaction(play, Limit::idle_transaction, "idle transactions");
         }},
    {.name = "transaction-timeout-inside-statement",
     .question = "A wait inside a transaction is longer than statement_timeout: does it survive?",
     .setup = Setup::durable,
     .by_key = true,
     .exempts = only_with_server_side_waits,
     .play = [](Play& play) { return wait_inside(play, Limit::statement, "long statements"); }},
    {.name = "transaction-timeout-inside-lock",
     .question = "A wait inside a transaction is longer than lock_timeout: does it survive?",
     .setup = Setup::durable,
     .by_key = true,
     .exempts = only_with_server_side_waits,
     .play = [](Play& play) { return wait_inside(play, Limit::lock_wait, "waits for locks"); }},
    {.name = "transaction-timeout-inside-idle",
     .question = "A wait inside a transaction is longer than the idle timeout: does it survive?",
     .setup = Setup::durable,
     .by_key = true,
     .exempts = only_with_server_side_waits,
     .play =
         [](Play& play) {
           return wait_inside(play, Limit::idle_transaction, "idle transactions");
         }},
});

}  // namespace
}  // namespace lockbench::hazards
