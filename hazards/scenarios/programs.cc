#include <fmt/format.h>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

// What only a library in another process can be asked. lockbench's own strategies have no thread of
// an application, and their tests cancel them and lose their stores.

std::optional<std::string> only_for_programs(const Descriptor& strategy) {
  if (!strategy.program.empty()) return std::nullopt;
  return "it is lockbench's own: this is for client programs";
}

std::optional<std::string> only_for_renewing_programs(const Descriptor& strategy) {
  if (auto why = only_for_programs(strategy)) return why;
  if (strategy.traits.renews || strategy.traits.expiry == Expiry::session) return std::nullopt;
  return "nothing renews it: see overrun-holding";
}

/// The holder's work shares a thread with whatever renews the lock.
Verdict busy_holding(Play& play) {
  Actor& holder = play.client("holder");
  Actor& second = play.client("second", {.wait = "poll:1ms"});
  const Grant held = holder.must_acquire();
  holder.start_work(play.ttl() * 5 / 2);
  const Grant next = second.acquire(2 * play.ttl());
  holder.finish_work();
  play.note("second_granted", next.granted());
  if (next.granted()) {
    return {HazardOutcome::double_grant,
            fmt::format("the work kept the renewal from running: a second client got the lock {} "
                        "after the grant, while the first one worked",
                        milliseconds(next.answered_at - held.answered_at))};
  }
  return {HazardOutcome::safe, "the lock was renewed while its holder worked"};
}

/// A library, or the code around it, must not take an error for a grant.
Verdict acquire_unreachable(Play& play) {
  constexpr std::uint16_t kNobody = 1;
  play.set_ttl(kLongTtl);
  Actor& second = play.client("second", {.behind_line = true});
  second.warm_up();
  play.client("holder").must_acquire();
  for (const auto& line : second.lines()) line->lead_to(kNobody);
  play.record_fault("the second client's connections are reset, and new ones are refused");
  const Grant next = second.try_acquire(std::chrono::seconds(1));
  if (next.granted()) {
    return {HazardOutcome::double_grant,
            "the second client was told that it has the lock, though its store could not be "
            "reached and the first one held it"};
  }
  return {HazardOutcome::safe, "the second client was not granted the lock: " + next.reason};
}

const ScenarioRegistration programs_scenarios({
    {.name = "busy-holding",
     .question = "The holder's work keeps its thread busy for longer than the TTL: is it renewed?",
     .quick = true,
     .exempts = only_for_renewing_programs,
     .play = busy_holding},
    {.name = "acquire-unreachable",
     .question = "The store cannot be reached while another client holds the lock: is it granted?",
     .quick = true,
     .exempts = only_for_programs,
     .play = acquire_unreachable},
});

}  // namespace
}  // namespace lockbench::hazards
