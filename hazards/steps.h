#pragma once

#include <functional>

#include "hazards/play.h"

namespace lockbench::hazards {

// What many scenarios have in common. All tell the timeline what they do.

/// Long enough for nothing in a play to run out by itself.
inline constexpr std::chrono::seconds kLongTtl{20};

/// "412 ms"
std::string milliseconds(Duration duration);

/// An acquisition that was not granted proves something only if the store said so: StageFailure
/// where it gave no answer.
void need_answer(const Grant& grant);

/// A release that never reached the store freed nothing, and proves nothing: StageFailure. What the
/// others ended with does not matter to what is seen of the lock afterwards.
void need_release(ReleaseOutcome outcome);

/// The same of a client that stood still until the lock was another's: the store may have ended its
/// session, and the connection with it. Such a release is repeated once.
void need_late_release(Actor& holder, const Grant& held, ReleaseOutcome outcome);

/// Whether somebody who kept asking got a lock that nobody lives to release: `recovers`, with the
/// time since `since`, or `stuck`. StageFailure if it was granted before that.
Verdict verdict_of_return(Play& play, const Grant& grant, TimePoint since);

/// The same, where the next client is to have the lock within `bound`: `stuck` if it took longer.
Verdict verdict_of_return(Play& play, const Grant& grant, TimePoint since, Duration bound);

/// The first client stops, and a second is granted the lock, for long: the grant, unless the lock
/// does not run out while its holder stands still. The first is left stopped.
Grant overtake(Play& play, Actor& holder, Actor& second);

/// After a release that may have freed what `owner` holds, a third client asks once:
/// `foreign-release` if it is granted the lock, else `safe`.
Verdict verdict_of_release(Play& play, std::string_view owner);

/// Two hold at once if the contender's was granted before the holder left: `double-grant`, or
/// `safe` because it had to wait.
Verdict verdict_of_two(Play& play, const Grant& contender, std::string_view why);

/// The first client holds a lock that is to last long, a fault comes, and a second asks:
/// `double-grant` or `safe`. `refused` where the first is not even granted it.
Verdict while_held(Play& play, const std::function<void(Stage&)>& fault, std::string_view what,
                   const ActorSettings& settings = {});

/// For a scenario's exempts: locks that live on one server, on none, or on several.
std::optional<std::string> unless_on_several_nodes(const Descriptor& strategy);

/// Of a contender whose grant tells when the store gave the lock up: where it polls, it polls every
/// millisecond. Those that queue are woken, or look for themselves, in their own time.
ActorSettings watchful();

/// From when the store gave the lock up to when its holder stopped to believe in it; negative is
/// good. `lost_at` must not be later than that, or by what the caller can answer for. Nothing while
/// it still believes and will go on.
void note_belief_gap(Play& play, Actor& holder, const Grant& held, TimePoint lost_at);

}  // namespace lockbench::hazards
