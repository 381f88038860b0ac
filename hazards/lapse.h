#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "hazards/play.h"

namespace lockbench::hazards {

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
