#include <fmt/format.h>

#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

// Plays without a fault: a control must fail them, or the other plays would prove nothing.

Verdict several_processes(Play& play) {
  play.set_ttl(kLongTtl);
  play.client("holder").must_acquire();
  return verdict_of_two(play, play.client("other").acquire(), "the clients are in two processes");
}

Verdict contention(Play& play) {
  play.set_ttl(kLongTtl);
  Actor& one = play.client("one");
  Actor& other = play.client("other");
  const Grant first = one.must_acquire();
  one.read(first);
  const Grant second = other.acquire();
  if (second.granted()) {
    other.read(second);
    other.write(second);
  }
  one.write(first);
  if (play.accepted_writes() > play.counter()) {
    return {HazardOutcome::lost_update,
            "both clients read the same value, and one update was lost"};
  }
  return {HazardOutcome::safe, "the other client had to wait, and no update was lost"};
}

Verdict owner_collision(Play& play) {
  play.set_ttl(kLongTtl);
  play.client("holder", {.number = 1}).must_acquire();
  const Grant twin = play.client("twin", {.number = 1}).acquire();
  return verdict_of_two(play, twin, "two processes use the same client number");
}

Verdict client_clock_ahead(Play& play) {
  play.set_ttl(kLongTtl);
  Actor& contender = play.client("contender");
  contender.shift_clock(std::chrono::hours(1));
  play.client("holder").must_acquire();
  return verdict_of_two(play, contender.acquire(), "the contender's clock is ahead");
}

Verdict reentry(Play& play) {
  play.set_ttl(std::chrono::seconds(6));
  Actor& holder = play.client("holder");
  Actor& contender = play.client("contender");
  const Grant outer = holder.must_acquire();
  const Grant inner = holder.acquire(std::chrono::seconds(1));
  if (!inner.granted()) {
    return {HazardOutcome::self_deadlock, "the holder's second acquisition waits for its own lock"};
  }
  require_release(holder.release(inner));
  const Grant between = contender.acquire();
  if (between.granted()) {
    return {
        HazardOutcome::double_grant,
        "granted twice but not counted: the inner release freed the lock that the outer section "
        "still needed"};
  }
  require_release(holder.release(outer));
  const Grant after = contender.acquire(std::chrono::seconds(1));
  if (after.granted()) {
    return {HazardOutcome::safe, "granted twice, and free after the second release"};
  }
  return {HazardOutcome::stuck, "granted twice, but still taken after both releases"};
}

/// The visitor uses an old lease that it has already released.
Verdict release_without_holding(Play& play) {
  play.set_ttl(kLongTtl);
  Actor& visitor = play.client("visitor");
  const Grant spent = visitor.must_acquire();
  if (visitor.release(spent) != ReleaseOutcome::released) {
    throw Failure("the visitor could not release its own lock");
  }
  play.client("holder").must_acquire();
  const Grant refused = visitor.acquire();
  if (refused.granted()) throw Failure("two clients hold the lock without any fault");
  play.record_fault("the visitor's clean-up code releases with its old lease");
  require_release(visitor.release(spent));
  return verdict_of_release(play, "holder");
}

/// A store may take it for a deletion: PEXPIRE 0 deletes the key, and answers with success.
Verdict renew_zero(Play& play) {
  play.set_ttl(kLongTtl);
  Actor& holder = play.client("holder");
  const Grant held = holder.must_acquire();
  const RenewOutcome renewed = holder.renew(held, Duration::zero());
  const Grant next = play.client("next").acquire();
  play.note("reported_success", renewed == RenewOutcome::renewed);
  play.note("next_granted", next.granted());
  if (!next.granted()) {
    return {HazardOutcome::safe, "the renewal for no time left the lock with its holder"};
  }
  if (renewed == RenewOutcome::not_owner) {
    return {HazardOutcome::safe, "the renewal for no time ended the lock, and said so"};
  }
  return {HazardOutcome::double_grant,
          fmt::format("the renewal for no time freed the lock and was reported as {}: another "
                      "client got it at once",
                      renewed == RenewOutcome::renewed ? "a success" : "without effect")};
}

const ScenarioRegistration controls_scenarios({
    {.name = "several-processes",
     .question = "Two clients in two processes, without a fault: do both hold the lock?",
     .for_controls = true,
     .exempts = only_if([](const Descriptor& one) { return one.traits.promises_exclusion; },
                        "a control: it grants the lock to everybody"),
     .play = several_processes},
    {.name = "contention",
     .question = "Two clients contend for the lock, without a fault: is an update lost?",
     .quick = true,
     .for_controls = true,
     .exempts = only_if([](const Descriptor& one) { return !one.traits.one_process; },
                        "it works within one process only: see several-processes"),
     .play = contention},
    {.name = "owner-collision",
     .question = "Two processes use the same client number: do both hold the lock?",
     .play = owner_collision},
    {.name = "client-clock-ahead",
     .question = "A contender's clock is ahead: does it take the lock away from its holder?",
     .play = client_clock_ahead},
    {.name = "reentry",
     .question = "The holder acquires the lock a second time: is it counted, freed too early or "
                 "deadlocked?",
     .play = reentry},
    {.name = "release-without-holding",
     .question = "A client that was refused releases in its clean-up: does it free another's lock?",
     .quick = true,
     .play = release_without_holding},
    {.name = "renew-zero",
     .question = "A client renews for no time at all: is it told that its lock has ended?",
     .quick = true,
     .exempts = only_if([](const Descriptor& one) { return one.traits.renew_check.has_value(); },
                        "its validity cannot be prolonged by a client"),
     .play = renew_zero},
});

}  // namespace
}  // namespace lockbench::hazards
