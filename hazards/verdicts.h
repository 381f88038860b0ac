#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hazards/play.h"

namespace lockbench::hazards {

// Shared by scenarios: checks that throw Failure when a play proves nothing, and verdicts.

/// Long enough that no lock expires during a play.
inline constexpr std::chrono::seconds kLongTtl{20};

/// "412 ms"
std::string milliseconds(Duration duration);

/// Throws Failure for a release that did not reach the store. Other outcomes do not matter:
/// the state of the lock afterwards decides.
void require_release(ReleaseOutcome outcome);

/// Like require_release(), for a client that was stopped until the lock had a new owner. The store
/// may have ended its session and connection, so a failed release is repeated once.
void require_late_release(Actor& holder, const Grant& held, ReleaseOutcome outcome);

/// For a lock that no living client will release: `recovers`, with the time from `since` to the
/// grant, or `stuck` if nothing was granted, or not within `bound`. Throws Failure if the grant
/// came before `since`.
Verdict verdict_of_return(Play& play, const Grant& grant, TimePoint since,
                          std::optional<Duration> bound = {});

/// After a release that may have freed the lock of `owner`: a third client tries once.
/// `foreign-release` if it is granted the lock, else `safe`.
Verdict verdict_of_release(Play& play, std::string_view owner);

/// `double-grant` if the contender was granted the lock while the first client held it, else
/// `safe`.
Verdict verdict_of_two(Play& play, const Grant& contender, std::string_view why);

/// Waits for the lock, and keeps asking for at most `patience` while the store gives no answer: a
/// cluster answers nobody while it elects a leader. Throws Failure without an answer.
Grant acquire_at_last(Actor& client, Duration wait, Duration patience);

/// After a second client's grant: `known-loss` if the holder had stopped treating the lock as its
/// own by then, else `double-grant`.
Verdict verdict_of_belief(Play& play, Actor& holder, const Grant& held, const Grant& next,
                          std::string_view what);

/// For Scenario::exempts: the scenario applies only to stores whose servers form a cluster.
std::optional<std::string> only_for_clusters(const Descriptor& strategy);

/// For Scenario::exempts: the scenario applies only to locks with network connections.
inline const auto only_with_connections =
    only_if([](const Descriptor& one) { return store_traits(one.backend).servers; },
            "it has no connections");

/// Records the belief gap: the time from the loss of the lock at the store until the holder stopped
/// treating it as valid. Negative is good. `lost_at` must not be later than the loss. Records and
/// returns nothing if the holder never stops.
std::optional<Duration> record_belief_gap(Play& play, Actor& holder, const Grant& held,
                                          TimePoint lost_at);

}  // namespace lockbench::hazards
