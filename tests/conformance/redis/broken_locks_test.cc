#include "tests/support/broken_locks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"

namespace lockbench::test {
namespace {

/// A lock that a check must reject, and for this reason rather than another.
struct Rejection {
  std::string_view property;
  Flaw flaw;
  std::string_view reason;
};

std::ostream& operator<<(std::ostream& out, const Rejection& rejection) {
  return out << rejection.reason;
}

// NOLINTNEXTLINE(readability-function-size): a table
const std::vector<Rejection>& all_rejections() {
  static const std::vector<Rejection> rejections{
      {"NoUpdateIsLost", Flaw::lets_two_in, "updates were lost"},
      {"UpdatesAreLost", Flaw::excludes_as_a_control, "no update was lost"},
      {"KeysAreIndependent", Flaw::confuses_keys, "names another key"},
      {"ReentryAsDeclared", Flaw::reenters_undeclared, "gave acquired"},
      {"FencingAsDeclared", Flaw::repeats_fencing_numbers, "7 came after 7"},
      {"DeadlineIsHonoured", Flaw::gives_up_early, "gave up after"},
      {"OneAttemptWithoutPatience", Flaw::tries_twice, "2 attempts"},
      {"WaiterGetsItsTurn", Flaw::never_retries, "gave timed_out"},
      {"StopEndsTheWait", Flaw::ignores_a_stop, "gave timed_out"},
      {"StopEndsTheWait", Flaw::loses_track_when_stopped, "gave unknown"},
      {"ForeignReleaseAsDeclared", Flaw::releases_unchecked, "gave released, not not_owner"},
      {"ForeignReleaseAsDeclared", Flaw::forgets_its_own_expiry, "gave released, not not_owner"},
      {"HolderRenewsAsDeclared", Flaw::renews_nothing, "hardly moved"},
      {"ForeignRenewalAsDeclared", Flaw::renews_unchecked, "gave renewed, not not_owner"},
      {"NothingStaysInTheStore", Flaw::leaves_an_unnamed_key, "named nowhere"},
      {"NothingStaysInTheStore", Flaw::forgets_to_release, "after a release"},
      {"NothingStaysForEver", Flaw::never_expires, "would stay for ever"},
      {"NothingStaysInTheProcess", Flaw::leaks_a_connection, "2 connections"},
      {"CrashedHoldersLockExpiresAsDeclared", Flaw::never_expires, "gave timed_out"},
      {"CrashedHoldersLockExpiresAsDeclared", Flaw::expires_undeclared, "no TTL expired"},
      {"ValidityIsNoLongerThanTheStoreKeeps", Flaw::counts_validity_from_the_answer,
       "longer than the store keeps"},
      {"ValidityIsNoLongerThanTheStoreKeeps", Flaw::never_expires, "for ever"},
      {"NoLeaseIsPastItsValidity", Flaw::hands_out_old_leases, "past its validity"},
      {"ValidityHasNoEnd", Flaw::expires_undeclared, "validity ends"},
      {"CommandsAreTheDeclaredOnes", Flaw::declares_too_much, "was never sent"},
      {"CommandsAreTheDeclaredOnes", Flaw::sends_undeclared, "is not declared"},
      {"CommandsAreTheDeclaredOnes", Flaw::sends_unreported, "the server saw"},
      {"SurvivesAScriptFlush", Flaw::does_not_fall_back, "release gave failed"},
      {"EveryCommandIsLabelled", Flaw::mislabels_the_key, "has the key"},
      {"LostAnswerIsUnknown", Flaw::does_not_tidy_up, "held by nobody"},
      {"LostAnswerIsUnknown", Flaw::calls_a_lost_answer_failure, "gave failed"},
      {"UnsentCommandIsAFailure", Flaw::calls_a_cut_refusal, "gave refused"},
      {"CutAcquisitionIsNoGrant", Flaw::calls_half_a_lock_failure, "gave failed"},
      {"LostReleaseIsAFailure", Flaw::calls_a_lost_release_success, "gave released"},
      {"UnreachableServerIsNamed", Flaw::never_looks_for_the_server, "connected to nothing"},
      {"DeathOfTheServerIsSurvived", Flaw::never_reconnects, "after a restart"},
      {"FrozenServerIsGivenUp", Flaw::calls_a_lost_answer_failure, "gave failed"},
      {"StopEndsACallToAFrozenServer", Flaw::ignores_a_stop, "did not end it"},
      {"WorksForAPlainUser", Flaw::needs_an_administrator, "NOPERM"},
      {"WorksOverAUnixSocket", Flaw::assumes_the_first_database, "not in database"},
      {"NoUpdateIsLostListening", Flaw::lets_two_in, "updates were lost"},
      {"StopEndsListening", Flaw::ignores_a_stop, "gave timed_out"},
      {"TimerSendsTheDeclaredCommands", Flaw::declares_another_renewal, "was not sent"},
      {"TimerLooksAtTheOwnerAsDeclared", Flaw::timer_renews_unchecked, "lock was prolonged"},
      {"ReleaseOvertakesARenewal", Flaw::timer_renews_unchecked, "lock was prolonged"},
      {"ReleaseOvertakesARenewal", Flaw::keeps_renewing, "a released lease counts as lost"},
      {"ReleaseWakesWhoListens", Flaw::forgets_to_tell, "was not woken"},
      {"OnlyReleasesAreTold", Flaw::tells_in_vain, "frees nothing"},
      {"OnlyReleasesAreTold", Flaw::forgets_to_tell, "told 0 times"},
      {"UnusedWakeupsArePassedOn", Flaw::hoards_wakeups, "the second: it was not woken"},
      {"DyingSubscriptionIsSurvived", Flaw::forgets_to_tell, "was not woken"},
      {"ListenerOutlastsACrashedHolder", Flaw::never_expires, "gave timed_out"},
      {"NoReleaseIsMissed", Flaw::forgets_to_tell, "was not woken"},
      {"ListenerLeavesNothing", Flaw::leaks_a_connection, "left behind"},
      {"FirstComeFirstServed", Flaw::lets_newcomers_barge, "were served as"},
      {"NewcomersDoNotBarge", Flaw::lets_newcomers_barge, "barged in"},
      {"SharersAreTogetherAndOthersAlone", Flaw::shares_with_nobody, "beside a sharer: "},
      {"SharersAreTogetherAndOthersAlone", Flaw::lets_sharers_in, "granted beside two sharers"},
      {"SharersDoNotOvertake", Flaw::lets_sharers_overtake, "overtook"},
      {"SharersExpireByThemselves", Flaw::lets_sharers_overtake, "after its TTL"},
      {"SharersExpireByThemselves", Flaw::lets_sharers_in, "while a sharer's lease was valid"},
      {"WrongPasswordStaysSecret", Flaw::tells_the_password, "tells the password"},
  };
  return rejections;
}

class BrokenLocks : public testing::TestWithParam<Rejection> {};

TEST_P(BrokenLocks, AreRejected) {
  const Descriptor& lock = broken_lock(GetParam().flaw);
  const Property property = find_property(GetParam().property);
  ASSERT_TRUE(property.applies(lock)) << property.name << " would never be asked";
  const Impatience waits_in_vain;
  const std::string said = property.check(lock);
  EXPECT_NE(said.find(GetParam().reason), std::string::npos)
      << property.name << " said: \"" << said << "\"";
}

std::string test_name(const testing::TestParamInfo<Rejection>& rejection) {
  return std::string(rejection.param.property) + "_" + std::to_string(rejection.index);
}

INSTANTIATE_TEST_SUITE_P(All, BrokenLocks, testing::ValuesIn(all_rejections()), test_name);

TEST(Properties, CanAllFail) {
  std::set<std::string_view> shown;
  for (const Rejection& rejection : all_rejections()) shown.insert(rejection.property);
  for (const Property& property : all_properties()) {
    EXPECT_TRUE(shown.contains(property.name)) << property.name << " has rejected no lock yet";
  }
}

TEST(Properties, AllApplyToSomeStrategy) {
  const auto strategies = all_strategies();
  for (const Property& property : all_properties()) {
    const bool used = std::any_of(strategies.begin(), strategies.end(), [&](const auto* strategy) {
      return property.applies(*strategy);
    });
    EXPECT_TRUE(used) << property.name << " checks nothing";
  }
}

}  // namespace
}  // namespace lockbench::test
