#include <fmt/format.h>

#include "hazards/steps.h"

namespace lockbench::hazards {
namespace {

/// The store forgets its last number together with the lock. The first client has read the counter
/// before, and writes after the second: a fenced counter has seen the first's number by then.
Verdict forgotten(Play& play, int earlier_grants, const std::function<void(Stage&)>& fault,
                  std::string_view what) {
  play.ask_for_ttl(kLongTtl);
  Actor& holder = play.client("holder", {.checks_fencing = true});
  for (int i = 0; i < earlier_grants; ++i) holder.release(holder.hold());
  const Grant held = holder.hold();
  if (!held.fencing) throw StageFailure("the grant carries no number");
  holder.read(held);
  fault(play.stage());
  play.tell(std::string(what));
  Actor& second = play.client("second", {.checks_fencing = true});
  const Grant next = second.acquire(std::chrono::seconds(2));
  need_answer(next);
  if (!next.granted()) {
    return {HazardOutcome::safe, "the lock was not forgotten: nobody else got it"};
  }
  play.note("first_number", static_cast<std::int64_t>(*held.fencing));
  play.note("second_number", static_cast<std::int64_t>(next.fencing.value_or(0)));
  second.read(next);
  const loadgen::WriteResult written = second.write(next);
  const loadgen::WriteResult late = holder.write(held);
  const std::uint64_t lost = play.accepted_writes() - play.counter();
  play.note("lost_updates", static_cast<std::int64_t>(lost));
  if (lost > 0) {
    return {HazardOutcome::lost_update,
            fmt::format("the second client's number was {}, and the first one's had been {}: the "
                        "counter took both for the rightful holder",
                        next.fencing.value_or(0), *held.fencing)};
  }
  if (written == loadgen::WriteResult::rejected_stale) {
    return {HazardOutcome::unavailable,
            fmt::format("the counter turns the new holder away, and every later one until the "
                        "numbers, back at {}, have passed {}",
                        next.fencing.value_or(0), *held.fencing)};
  }
  if (late != loadgen::WriteResult::rejected_stale) {
    throw StageFailure("the late write was not turned away, and yet no update is lost");
  }
  return {HazardOutcome::safe, "the numbers went on growing, and the late write was turned away"};
}

Verdict restart(Play& play) {
  return forgotten(
      play, 10, [](Stage& stage) { stage.restart(); }, "the store was killed and came back empty");
}

/// Not a single number has reached the replica.
Verdict failover(Play& play) {
  play.stage().cut_replication();
  play.tell("replication is cut");
  return forgotten(
      play, 0, [](Stage& stage) { stage.fail_over(); },
      "the primary died and its replica took over");
}

std::optional<std::string> without_numbers(const Descriptor& strategy) {
  if (strategy.traits.fencing) return std::nullopt;
  return "its grants carry no numbers: see pause-holding-fenced";
}

const ScenarioRegistration restarted({
    .name = "restart-fenced",
    .question =
        "The store comes back empty, without its last number: what does a fenced counter do?",
    .ground = Ground::volatile_,
    .exempts = without_numbers,
    .play = restart,
});

const ScenarioRegistration replaced({
    .name = "failover-fenced",
    .question = "A replica takes over that has not heard the last number: is an update lost?",
    .ground = Ground::replicated,
    .exempts = without_numbers,
    .play = failover,
});

}  // namespace
}  // namespace lockbench::hazards
