#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "hazards/play.h"

namespace lockbench::hazards {

// Shared by scenarios: checks that throw Failure when a play proves nothing, and verdicts.

/// So long that no lock expires during a play.
inline constexpr std::chrono::seconds kLongTtl{20};

/// "412 ms"
std::string milliseconds(Duration duration);

/// Throws Failure if the store gave no answer: only a real answer proves something.
void require_answer(const Grant& grant);

/// Throws Failure for a release that did not reach the store. Other outcomes do not matter:
/// the state of the lock afterwards decides.
void require_release(ReleaseOutcome outcome);

/// The same for a client that was stopped until the lock had a new owner. The store may have ended
/// its session and connection, so a failed release is repeated once.
void require_late_release(Actor& holder, const Grant& held, ReleaseOutcome outcome);

/// For a lock that no living client will release: `recovers`, with the time from `since` to the
/// grant, or `stuck`. Throws Failure if the grant came before `since`.
Verdict verdict_of_return(Play& play, const Grant& grant, TimePoint since);

/// The same with an upper bound: `stuck` if the grant took longer than `bound`.
Verdict verdict_of_return(Play& play, const Grant& grant, TimePoint since, Duration bound);

/// Stops the holder until its lock has run out and lets a second client acquire the lock with a
/// long TTL. Returns the second client's answer: not granted if the lock did not run out. The
/// holder stays stopped.
Grant take_over(Play& play, Actor& holder, const Grant& held, Actor& second);

/// After a release that may have freed the lock of `owner`: a third client tries once.
/// `foreign-release` if it is granted the lock, else `safe`.
Verdict verdict_of_release(Play& play, std::string_view owner);

/// `double-grant` if the contender was granted the lock while the first client held it, else
/// `safe`.
Verdict verdict_of_two(Play& play, const Grant& contender, std::string_view why);

/// A client acquires the lock with a long TTL, the fault strikes, and a second client tries:
/// `double-grant` or `safe`. `refused` if the store does not grant the lock to the first client.
Verdict while_held(Play& play, const std::function<void(PrivateStore&)>& fault,
                   std::string_view what, const ActorSettings& settings = {});

/// For Scenario::exempts: the scenario applies to locks on several independent nodes only.
std::optional<std::string> only_for_quorums(const Descriptor& strategy);
/// Likewise, to locks with connections that a network can cut.
std::optional<std::string> only_with_connections(const Descriptor& strategy);

/// Records the belief gap: from the loss of the lock at the store to the moment when the holder
/// stopped treating it as valid. Negative is good. `lost_at` must not be later than the loss.
/// Records and returns nothing if the holder never stops.
std::optional<Duration> record_belief_gap(Play& play, Actor& holder, const Grant& held,
                                          TimePoint lost_at);

// Plays in which a lock may run out while its holder works. The holder reads the protected counter;
// a fault delays it; a second client is granted the lock and writes; then it is the holder's turn.

/// How these plays differ.
struct Lapse {
  std::string_view what{};  ///< "the holder was cut off"
  /// The fault, and its end at least two TTLs after the grant. Unset: the work just takes long.
  std::function<void(Actor&)> begin{}, end{};
  /// The second client asks from the grant on; otherwise first when the lock's time is over.
  bool contends = false;
  /// For how long it asks at least, where members may take long to elect a leader.
  Duration patience{};
  /// The holder looks at its lease before it writes. Otherwise it writes anyway: it has looked
  /// before the fault, or does not look at all.
  bool looks = false;
  bool fenced = false;       ///< the counter checks fencing numbers
  bool behind_line = false;  ///< the holder connects through proxies
  /// The members of a cluster that each connects to; empty: all.
  std::vector<std::size_t> holders_members{}, seconds_members{};
};

/// `not-applicable` if the lock did not run out: the play did not reach its question. `safe` if it
/// was kept by renewal, or if the counter rejected the late write. If another client got it:
/// `known-loss` or `double-grant`, by what the holder believed at that time; for a holder that does
/// not look `lost-update`.
Verdict play_lapse(Play& play, const Lapse& lapse);

/// Waits until a lock that nobody renews has run out, as whole seconds and ticks are counted by its
/// store.
void await_expiry(const Play& play, const Grant& held);

/// `not-applicable`, for a lock that is still its holder's when the play needs it to have run out.
Verdict not_run_out(std::string_view meanwhile);

}  // namespace lockbench::hazards
