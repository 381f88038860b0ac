// Locks whose store seems to fail: a play must not turn that into a verdict.

#include <set>

#include "strategies/redis/redlock_lock.h"
#include "tests/hazards/mutants/around.h"

namespace lockbench {
namespace {

/// Refusals, and the second client of a play, get no answer.
template <bool kSecondToo>
class Silent : public Around {
 public:
  Silent(std::string_view around, const Context& context)
      : Around(around, context), second_(kSecondToo && context.client == 2) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Around::acquire(request);
    if (result.lease && !second_) return result;
    if (result.lease) release(*result.lease);
    return {.outcome = AcquireOutcome::failed, .reason = "the store does not answer"};
  }

 private:
  const bool second_;
};

/// The second client cannot reach the store, and learns this at once.
class CutOff : public Around {
 public:
  CutOff(std::string_view around, const Context& context)
      : Around(around, context), second_(context.client == 2) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    if (!second_) return Around::acquire(request);
    return {.outcome = AcquireOutcome::failed, .reason = "the store does not answer"};
  }

 private:
  const bool second_;
};

/// After one lost answer no more answers arrive.
struct SilentForGood : Around {
  using Around::Around;
  AcquireResult acquire(const AcquireRequest& request) override {
    if (silent_) return {.outcome = AcquireOutcome::failed, .reason = "the store does not answer"};
    AcquireResult result = Around::acquire(request);
    silent_ = result.outcome == AcquireOutcome::unknown;
    return result;
  }

 private:
  bool silent_ = false;
};

/// Gets no answer to a release, or none to a repeated release.
template <bool kFirstToo>
struct UnheardRelease : Around {
  using Around::Around;
  ReleaseResult release(const Lease& lease) override {
    ReleaseResult result = Around::release(lease);
    const bool first = released_.insert(lease.token).second;
    if (first && !kFirstToo) return result;
    return {ReleaseOutcome::failed, "the store does not answer"};
  }

 private:
  std::set<std::string> released_;
};

template <class Mutant>
Descriptor described(std::string_view name, std::string_view backend, std::string_view around,
                     const Traits& traits) {
  Descriptor made = mutant(name, backend, traits, wrapping<Mutant>(around));
  // The same number as redis-getset: its plays count them.
  made.acquire_commands = {"as", "the", "wrapped lock"};
  return made;
}

Traits with_ttl(OwnerCheck release_check) {
  return {.expiry = Expiry::ttl, .release_check = release_check, .waiting_choices = {}};
}
Traits with_session() {
  return {.expiry = Expiry::session,
          .release_check = OwnerCheck::atomic,
          .fencing = true,
          .waiting_choices = {}};
}

const Registration silent(described<Silent<true>>("test-silent", "redis", "redis-set-nx-lua",
                                                  with_ttl(OwnerCheck::atomic)));
const Registration confused(described<Silent<true>>("test-silent-confused", "redis",
                                                    "test-confused", with_ttl(OwnerCheck::atomic)));
const Registration getset(described<Silent<true>>("test-silent-getset", "redis", "redis-getset",
                                                  with_ttl(OwnerCheck::local_clock)));
const Registration redlock(described<Silent<true>>("test-silent-redlock", "redis", "redlock",
                                                   redis::redlock_traits()));
const Registration etcd(described<Silent<true>>("test-silent-etcd", "etcd", "etcd",
                                                with_session()));
const Registration cut_off(described<CutOff>("test-cut-off", "postgres", "postgres-advisory",
                                             with_session()));
const Registration refused(described<Silent<false>>("test-silent-refusal", "redis", "redlock",
                                                    redis::redlock_traits()));
const Registration for_good(described<SilentForGood>("test-silent-for-good", "redis",
                                                     "redis-set-nx-lua",
                                                     with_ttl(OwnerCheck::atomic)));
const Registration unheard(described<UnheardRelease<true>>("test-unheard-release", "redis",
                                                           "redis-set-nx-lua",
                                                           with_ttl(OwnerCheck::atomic)));
const Registration repeated(described<UnheardRelease<false>>("test-unheard-repetition", "redis",
                                                             "redis-set-nx-lua",
                                                             with_ttl(OwnerCheck::atomic)));

}  // namespace
}  // namespace lockbench
