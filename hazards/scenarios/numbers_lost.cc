#include <fmt/format.h>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

/// The store may lose the lock and the fencing numbers. The first client has read the fenced
/// counter before, which registers its number, and writes after the second client. If the lock
/// survives the second client gets it after an orderly release: a number is drawn before and after
/// the fault.
Verdict lose_numbers(Play& play, int earlier_grants,
                     const std::function<void(PrivateStore&)>& fault, std::string_view what) {
  play.set_ttl(kLongTtl);
  Actor& holder = play.client("holder", {.checks_fencing = true});
  for (int i = 0; i < earlier_grants; ++i) holder.release(holder.must_acquire());
  const Grant held = holder.must_acquire();
  if (!held.fencing) throw Failure("the grant has no fencing number");
  holder.read(held);
  fault(play.store());
  play.record_fault(std::string(what));
  Actor& second = play.client("second", {.checks_fencing = true});
  Grant next = second.acquire(std::chrono::seconds(2));
  require_answer(next);
  const bool survived = !next.granted();
  play.note("lock_survived", survived);
  if (survived) {
    require_late_release(holder, held, holder.release(held));
    next = second.must_acquire();
  }
  play.note("first_number", static_cast<std::int64_t>(*held.fencing));
  play.note("second_number", static_cast<std::int64_t>(next.fencing.value_or(0)));
  second.read(next);
  const loadgen::WriteResult written = second.write(next);
  const loadgen::WriteResult late = holder.write(held);
  const std::uint64_t lost = play.accepted_writes() - play.counter();
  play.note("lost_updates", static_cast<std::int64_t>(lost));
  if (lost > 0) {
    return {
        HazardOutcome::lost_update,
        fmt::format("the second client's fencing number was {}, the first one's {}: the counter "
                    "accepted both writes",
                    next.fencing.value_or(0), *held.fencing)};
  }
  if (written == loadgen::WriteResult::rejected_stale) {
    return {HazardOutcome::unavailable,
            fmt::format("the counter rejects every new holder until the fencing numbers, which "
                        "restarted at {}, have passed {}",
                        next.fencing.value_or(0), *held.fencing)};
  }
  if (late != loadgen::WriteResult::rejected_stale) {
    throw Failure("the late write was accepted, but no update was lost");
  }
  return {
      HazardOutcome::safe,
      fmt::format("the {} survived, the fencing numbers went on growing, and the late write was "
                  "rejected",
                  survived ? "lock" : "counter")};
}

Verdict numbers_after_restart(Play& play) {
  return lose_numbers(
      play, 10, [](PrivateStore& store) { store.restart(); },
      "the store was killed and came back empty");
}

/// No number has been replicated.
Verdict numbers_after_failover(Play& play) {
  play.store().cut_replication();
  play.record_fault("replication is cut");
  return lose_numbers(
      play, 0, [](PrivateStore& store) { store.fail_over(); },
      "the primary died and its replica took over");
}

const auto only_with_fencing =
    only_if([](const Descriptor& one) { return one.traits.fencing; },
            "its grants have no fencing numbers: see pause-holding-fenced");

const ScenarioRegistration restart_fenced_scenario({
    .name = "restart-fenced",
    .question =
        "The store restarts empty and loses the fencing numbers: what does a fenced counter do?",
    .setup = Setup::volatile_,
    .exempts = only_with_fencing,
    .play = numbers_after_restart,
});

const ScenarioRegistration failover_fenced_scenario({
    .name = "failover-fenced",
    .question = "A replica without the last fencing number takes over: is an update lost?",
    .setup = Setup::replicated,
    .exempts = only_with_fencing,
    .play = numbers_after_failover,
});

}  // namespace
}  // namespace lockbench::hazards
