#pragma once

#include <string_view>

#include "strategies/descriptor.h"

namespace lockbench::test {

/// One thing that is wrong with an otherwise sound lock.
enum class Flaw {
  lets_two_in,
  excludes_as_a_control,
  confuses_keys,
  reenters_undeclared,
  repeats_fencing_numbers,
  ignores_the_deadline,
  gives_up_early,
  tries_twice,
  never_retries,
  ignores_a_stop,
  heeds_a_stop_late,
  loses_track_when_stopped,
  releases_unchecked,
  forgets_its_own_expiry,
  renews_unchecked,
  renews_nothing,
  leaves_an_unnamed_key,
  forgets_to_release,
  leaks_a_connection,
  never_expires,
  expires_undeclared,
  counts_validity_from_the_answer,
  hands_out_old_leases,
  declares_too_much,
  sends_undeclared,
  sends_unreported,
  does_not_fall_back,
  mislabels_the_key,
  does_not_tidy_up,
  calls_a_lost_answer_failure,
  calls_a_cut_refusal,
  calls_half_a_lock_failure,
  calls_a_lost_release_success,
  never_looks_for_the_server,
  never_reconnects,
  waits_too_long_for_answers,
  needs_an_administrator,
  assumes_the_first_database,
  timer_renews_unchecked,
  forgets_to_renew,
  keeps_renewing,
  declares_another_renewal,
  forgets_to_tell,
  tells_in_vain,
  hoards_wakeups,
  lets_newcomers_barge,
  shares_with_nobody,
  lets_sharers_in,
  lets_sharers_overtake,
  tells_the_password,
};

/// A lock that declares what a sound one does, and does not keep it. Not in the registry; the
/// reference is good until the program ends. Thread-safe.
const Descriptor& broken_lock(Flaw flaw);

}  // namespace lockbench::test
