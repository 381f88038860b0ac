#pragma once

#include <array>

#include "results/file/model.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// Where a figure of a family of locks is shown: its name in the result file, its Prometheus
/// metric, its column in tables.
struct FamilyRow {
  using Member = std::variant<std::uint64_t Observed::*, std::optional<std::uint64_t> Observed::*,
                              double Observed::*, std::optional<double> Observed::*,
                              Distribution Observed::*, std::optional<Distribution> Observed::*>;
  /// How a table shows a count that may be incomplete.
  enum Count {
    plain,
    bounded,  ///< "≥12", "~12"
    bad,      ///< like bounded, for events that should not happen
    looked,   ///< like bad, and a lower bound if not all holders were looked at
  };
  struct Titled {
    const char* group = "";
    const char* name = "";  ///< empty: the column of a number is shown only if it is asked for
    int rank = 0;
    Show show = Show::always;
    Count count = plain;
  };

  const char* name;
  Unit unit;
  Member member;
  const char* metric;  ///< null: none; "..._total" is a counter, a distribution a histogram
  const char* help;
  Titled column{};
};

constexpr FamilyRow::Titled titled(const char* group, const char* name, int rank,
                                   Show show = Show::always,
                                   FamilyRow::Count count = FamilyRow::plain) {
  return {group, name, rank, show, count};
}

/// The single list of the figures of a family. The result file, the tables, the screen and the
/// exporter are derived from it.
inline constexpr auto kFamilyRows = std::to_array<FamilyRow>({
    {"locks", Unit::count, &Observed::locks, "lockbench_watch_locks",
     "Distinct locks that were seen.", titled("", "locks", 8)},
    {"acquisitions", Unit::count, &Observed::acquisitions, "lockbench_watch_acquisitions_total",
     "Acquisitions that were seen.", titled("", "acquired", 1, Show::always, FamilyRow::bounded)},
    {"acquisitions_per_second", Unit::number, &Observed::acquisitions_per_second, nullptr,
     "Acquisitions per second in the last seconds.",
     titled("acquired", "per s", 3, Show::if_asked)},
    {"releases", Unit::count, &Observed::releases, "lockbench_watch_releases_total",
     "Locks that their holders released.",
     titled("", "released", 7, Show::always, FamilyRow::bounded)},
    {"renewals", Unit::count, &Observed::renewals, "lockbench_watch_renewals_total",
     "Renewals, seen as a time to live that grew while the same client held the lock.",
     titled("", "renewed", 8, Show::if_any, FamilyRow::bounded)},
    {"expired_while_held", Unit::count, &Observed::expired_while_held,
     "lockbench_watch_expired_while_held_total",
     "Holdings that ended by expiry, not by a release: the holder died or overran.",
     titled("", "expired", 1, Show::always, FamilyRow::bad)},
    {"undecided", Unit::count, &Observed::undecided, "lockbench_watch_undecided_ends_total",
     "Holdings that ended so close to the expiry that a release is as likely.",
     titled("", "undecided", 6, Show::if_any, FamilyRow::bounded)},
    {"taken_over", Unit::count, &Observed::taken_over, "lockbench_watch_taken_over_total",
     "Expired locks that were taken again within a second, under another token: two clients may "
     "have held the lock at once.",
     titled("taken", "over", 2, Show::always, FamilyRow::looked)},
    {"owner_changed", Unit::count, &Observed::owner_changed, "lockbench_watch_owner_changed_total",
     "Changes of a lock's holder without a release or an expiry in between.",
     titled("owner", "changed", 3, Show::if_any, FamilyRow::looked)},
    {"session_lost", Unit::count, &Observed::session_lost, "lockbench_watch_sessions_lost_total",
     "Holdings that ended with the session or the connection of their holder.",
     titled("session", "lost", 4, Show::if_any, FamilyRow::bad)},
    {"lapsed", Unit::count, &Observed::lapsed, "lockbench_watch_lapsed_total",
     "Holdings that ended by expiry in a family that is never released, such as a schedule.",
     titled("", "lapsed", 6, Show::if_any, FamilyRow::bounded)},
    {"no_ttl", Unit::count, &Observed::no_ttl, nullptr,
     "Holdings without a time to live, though the store has one, including those held now.",
     titled("without", "TTL", 3, Show::if_any, FamilyRow::looked)},
    {"without_ttl", Unit::count, &Observed::without_ttl,
     "lockbench_watch_granted_without_ttl_total",
     "Holdings that ended without ever having a time to live, though the store has one."},
    {"without_ttl_now", Unit::count, &Observed::without_ttl_now, "lockbench_watch_without_ttl",
     "Locks that are held without a time to live, though the store has one."},
    {"thin_margins", Unit::count, &Observed::thin_margins, "lockbench_watch_thin_margins_total",
     "Releases and renewals with less than a tenth of the time to live left."},
    {"held_now", Unit::count, &Observed::held_now, "lockbench_watch_held", "Locks that are held.",
     titled("held", "now", 2)},
    {"waiting_now", Unit::count, &Observed::waiting_now, "lockbench_watch_waiters",
     "Clients that wait; NaN if the store does not show them.", titled("waiting", "now", 3)},
    {"most_waiting", Unit::count, &Observed::most_waiting, nullptr,
     "The most clients that waited at the same time."},
    {"held_long_now", Unit::count, &Observed::held_long_now, "lockbench_watch_held_long",
     "Locks that are held for longer than --held-longer, or than usual in their family."},
    {"renewal_stopped_now", Unit::count, &Observed::renewal_stopped_now,
     "lockbench_watch_renewal_stopped",
     "Held locks whose holder renewed them in time before, but no longer does."},
    {"oldest_hold", Unit::seconds, &Observed::oldest_hold, "lockbench_watch_oldest_hold_seconds",
     "Age of the longest current hold; 0 if nothing is held.",
     titled("oldest", "hold", 2, Show::if_asked)},
    {"oldest_wait", Unit::seconds, &Observed::oldest_wait, "lockbench_watch_oldest_wait_seconds",
     "Age of the longest current wait; 0 if nobody waits, or if it is not known.",
     titled("oldest", "wait", 5, Show::if_asked)},
    {"hold", Unit::seconds, &Observed::hold, "lockbench_watch_hold_duration_seconds",
     "How long locks were held.", titled("hold", "", 2)},
    {"wait", Unit::seconds, &Observed::wait, "lockbench_watch_wait_duration_seconds",
     "How long clients waited, if the store shows waiters.", titled("wait", "", 5, Show::if_any)},
    {"margin_min", Unit::seconds, &Observed::margin_min, "lockbench_watch_margin_min_seconds",
     "The shortest time to live left at a release or renewal since the watch began; NaN if none "
     "was "
     "seen.",
     titled("smallest", "margin", 5)},
    {"largest_share", Unit::share, &Observed::largest_share, "lockbench_watch_largest_share",
     "The share of the acquisitions that went to the client with the most."},
    {"owner_share", Unit::share, &Observed::owner_share, "lockbench_watch_owner_share",
     "The share of the acquisitions whose holder was looked at; holders, renewals, margins, "
     "takeovers and stolen locks are only seen of these.",
     titled("holder", "seen", 6, Show::if_asked)},
    {"hold_share", Unit::share, &Observed::hold_share, "lockbench_watch_hold_share",
     "The share of the ended holdings whose length was seen.",
     titled("length", "seen", 6, Show::if_asked)},
    {"missed", Unit::count, &Observed::missed, nullptr, "Changes of this store that were missed.",
     titled("", "missed", 6, Show::if_any)},
});

/// A row for each family of locks, in the order of the file. The result must be of a watch.
Table observed_table(const Result& result);
/// The locks that hurt most.
Table lock_table(const std::vector<ObservedLock>& locks);
/// The servers, and how well they could be seen.
Table source_table(const std::vector<ObservedSource>& sources);

/// "expired: redis order: 12 of 40 ended holdings"
std::string sentence_of(const ObservedFinding& finding);
/// Bad: two clients may hold the lock, or nobody can get it.
Tone tone_of(const ObservedFinding& finding);

}  // namespace lockbench::results
