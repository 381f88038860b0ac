#include "tests/support/broken_locks.h"

#include "strategies/registry.h"
#include "tests/conformance/common/rejection.h"

namespace lockbench::test {
namespace {

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<Rejection> all_rejections() {
  return {
      {"NoUpdateIsLost", broken_lock("lets_two_in"), "updates were lost"},
      {"UpdatesAreLost", broken_lock("excludes_as_a_control"), "no update was lost"},
      {"AsManyAreInsideAsPermitted", broken_lock("lets_all_have_a_permit"), "more are inside"},
      {"AsManyAreInsideAsPermitted", broken_lock("has_one_permit"),
       "a permit: acquire gave refused"},
      {"KeysAreIndependent", broken_lock("confuses_keys"), "names another key"},
      {"ReentryAsDeclared", broken_lock("reenters_undeclared"), "gave acquired"},
      {"FencingAsDeclared", broken_lock("repeats_fencing_numbers"), "7 came after 7"},
      {"DeadlineIsHonoured", broken_lock("gives_up_early"), "gave up after"},
      {"OneAttemptWithoutPatience", broken_lock("tries_twice"), "2 attempts"},
      {"WaiterGetsItsTurn", broken_lock("never_retries"), "gave timed_out"},
      {"StopEndsTheWait", broken_lock("ignores_a_stop"), "gave timed_out"},
      {"StopEndsTheWait", broken_lock("loses_track_when_stopped"), "gave unknown"},
      {"ForeignReleaseAsDeclared", broken_lock("releases_unchecked"),
       "gave released, not not_owner"},
      {"ForeignReleaseAsDeclared", broken_lock("forgets_its_own_expiry"),
       "gave released, not not_owner"},
      {"HolderRenewsAsDeclared", broken_lock("renews_nothing"), "hardly moved"},
      {"ForeignRenewalAsDeclared", broken_lock("renews_unchecked"), "gave renewed, not not_owner"},
      {"NothingStaysInTheStore", broken_lock("leaves_an_unnamed_key"), "named nowhere"},
      {"NothingStaysInTheStore", broken_lock("forgets_to_release"), "after a release"},
      {"NothingStaysOfAListener", broken_lock("leaves_an_unnamed_key"), "named nowhere"},
      {"NothingUndeclaredStaysForEver", broken_lock("never_expires"), "would stay for ever"},
      {"NothingStaysInTheProcess", broken_lock("leaks_a_connection"), "2 connections"},
      {"CrashedHoldersLockExpiresAsDeclared", broken_lock("never_expires"), "gave timed_out"},
      {"CrashedHoldersLockExpiresAsDeclared", broken_lock("expires_undeclared"), "no TTL expired"},
      {"ValidityIsNoLongerThanTheStoreKeeps", broken_lock("counts_validity_from_the_answer"),
       "longer than the store keeps"},
      {"ValidityIsNoLongerThanTheStoreKeeps", broken_lock("never_expires"), "for ever"},
      {"NoLeaseIsPastItsValidity", broken_lock("hands_out_old_leases"), "past its validity"},
      {"ValidityHasNoEnd", broken_lock("expires_undeclared"), "validity ends"},
      {"CommandsAreTheDeclaredOnes", broken_lock("declares_too_much"), "was never sent"},
      {"CommandsAreTheDeclaredOnes", broken_lock("sends_undeclared"), "is not declared"},
      {"CommandsAreTheDeclaredOnes", broken_lock("sends_unreported"), "the server saw"},
      {"SurvivesAScriptFlush", broken_lock("does_not_fall_back"), "release gave failed"},
      {"EveryCommandIsLabelled", broken_lock("mislabels_the_key"), "has the key"},
      {"LostAnswerIsUnknown", broken_lock("does_not_tidy_up"), "held by nobody"},
      {"LostAnswerIsUnknown", broken_lock("calls_a_lost_answer_failure"), "gave failed"},
      {"UnsentCommandIsAFailure", broken_lock("calls_a_cut_refusal"), "gave refused"},
      {"CutAcquisitionIsNoGrant", broken_lock("calls_half_a_lock_failure"), "gave failed"},
      {"LostReleaseIsAFailure", broken_lock("calls_a_lost_release_success"), "gave released"},
      {"UnreachableServerIsNamed", broken_lock("never_looks_for_the_server"),
       "connected to nothing"},
      {"DeathOfTheServerIsSurvived", broken_lock("never_reconnects"), "after a restart"},
      {"FrozenServerIsGivenUp", broken_lock("calls_a_lost_answer_failure"), "gave failed"},
      {"StopEndsACallToAFrozenServer", broken_lock("ignores_a_stop"), "did not end it"},
      {"WorksOverAUnixSocket", broken_lock("needs_an_administrator"), "NOPERM"},
      {"WorksOverAUnixSocket", broken_lock("assumes_the_first_database"), "not in database"},
      {"NoUpdateIsLostListening", broken_lock("lets_two_in"), "updates were lost"},
      {"StopEndsListening", broken_lock("ignores_a_stop"), "gave timed_out"},
      {"TimerSendsTheDeclaredCommands", broken_lock("declares_another_renewal"), "was not sent"},
      {"TimerSendsTheDeclaredCommands", broken_lock("forgets_to_renew"), "was not sent"},
      {"TimerLooksAtTheOwnerAsDeclared", broken_lock("timer_renews_unchecked"),
       "lock was prolonged"},
      {"ReleaseOvertakesARenewal", broken_lock("timer_renews_unchecked"), "lock was prolonged"},
      {"ReleaseOvertakesARenewal", broken_lock("keeps_renewing"),
       "a released lease counts as lost"},
      {"OnlyReleasesAreTold", broken_lock("tells_in_vain"), "frees nothing"},
      {"OnlyReleasesAreTold", broken_lock("forgets_to_tell"), "told 0 times"},
      {"UnusedWakeupsArePassedOn", broken_lock("hoards_wakeups"), "the second: it was not woken"},
      {"DyingSubscriptionIsSurvived", broken_lock("forgets_to_tell"), "was not woken"},
      {"ListenerOutlastsACrashedHolder", broken_lock("never_expires"), "gave timed_out"},
      {"NoReleaseIsMissed", broken_lock("forgets_to_tell"), "was not woken"},
      {"FirstComeFirstServed", broken_lock("lets_newcomers_barge"), "were served as"},
      {"NewcomersDoNotBarge", broken_lock("lets_newcomers_barge"), "barged in"},
      {"SharersAreTogetherAndOthersAlone", broken_lock("shares_with_nobody"), "beside a sharer: "},
      {"SharersAreTogetherAndOthersAlone", broken_lock("lets_sharers_in"),
       "granted beside two sharers"},
      {"SharersDoNotOvertake", broken_lock("lets_sharers_overtake"), "overtook"},
      {"SharersExpireByThemselves", broken_lock("lets_sharers_overtake"), "after its TTL"},
      {"SharersExpireByThemselves", broken_lock("lets_sharers_in"),
       "while a sharer's lease was valid"},
      {"WrongPasswordStaysSecret", broken_lock("tells_the_password"), "tells the password"},
  };
}

class BrokenLocks : public testing::TestWithParam<Rejection> {};

TEST_P(BrokenLocks, AreRejected) { expect_rejection(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, BrokenLocks, testing::ValuesIn(all_rejections()), rejection_name);

/// Says that a write counts even if it was refused.
class Overwritten : public LockStrategy {
 public:
  explicit Overwritten(const Context& context)
      : updates_(find_strategy("redis-cas-retry")->make(context)) {}

  StoreResult<void> connect() override { return updates_->connect(); }
  AcquireResult acquire(const AcquireRequest& request) override {
    return updates_->acquire(request);
  }
  ReleaseResult release(const Lease& lease) override {
    updates_->release(lease);
    return {ReleaseOutcome::released, {}};
  }

 private:
  std::unique_ptr<LockStrategy> updates_;
};

TEST(Properties, FindLostUpdatesOfControlsWithoutALock) {
  Descriptor lossy = *find_strategy("redis-cas-retry");
  lossy.make = construct<Overwritten>;
  EXPECT_THAT(update_properties().front().complaint(lossy), testing::HasSubstr("were lost"));
}

TEST(Properties, CanAllFail) { expect_all_can_fail(all_properties(), all_rejections()); }

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
