// Locks whose store seems to fail: a play must not turn that into a verdict.

#include <set>

#include "strategies/redis/redlock_lock.h"
#include "tests/support/around.h"

namespace lockbench {
namespace {

/// Refusals get no answer, and neither does the second client of a play.
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

/// The second client cannot reach the store, or is refused a free lock, and learns this
/// immediately.
template <AcquireOutcome kOutcome>
class CutOff : public Around {
 public:
  CutOff(std::string_view around, const Context& context)
      : Around(around, context), second_(context.client == 2) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    if (!second_) return Around::acquire(request);
    return {.outcome = kOutcome, .reason = "the store does not answer"};
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

/// Gets no answer to a first release, or to a repeated one.
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
  // As many as redis-getset has: its plays count them.
  made.acquire_commands = {"as", "the", "wrapped lock"};
  return made;
}

template <class Mutant>
Descriptor on_redis(std::string_view name, std::string_view around = "redis-set-nx-lua",
                    OwnerCheck release_check = OwnerCheck::atomic) {
  return described<Mutant>(
      name, "redis", around,
      {.expiry = Expiry::ttl, .release_check = release_check, .waiting_choices = {}});
}

template <class Mutant>
Descriptor in_a_session(std::string_view name, std::string_view backend, std::string_view around) {
  return described<Mutant>(name, backend, around,
                           {.expiry = Expiry::session,
                            .release_check = OwnerCheck::atomic,
                            .fencing = true,
                            .waiting_choices = {}});
}

template <class Mutant>
Descriptor on_a_quorum(std::string_view name) {
  return described<Mutant>(name, "redis", "redlock", redis::redlock_traits());
}

const Registration silent(on_redis<Silent<true>>("test-silent"));
const Registration confused(on_redis<Silent<true>>("test-silent-confused", "test-confused"));
const Registration getset(on_redis<Silent<true>>("test-silent-getset", "redis-getset",
                                                 OwnerCheck::local_clock));
const Registration redlock(on_a_quorum<Silent<true>>("test-silent-redlock"));
const Registration etcd(in_a_session<Silent<true>>("test-silent-etcd", "etcd", "etcd"));
const Registration cut_off(in_a_session<CutOff<AcquireOutcome::failed>>("test-cut-off", "postgres",
                                                                        "postgres-advisory"));
const Registration refused_free(on_redis<CutOff<AcquireOutcome::refused>>("test-refused-free"));
const Registration refused(on_a_quorum<Silent<false>>("test-silent-refusal"));
const Registration for_good(on_redis<SilentForGood>("test-silent-for-good"));
const Registration unheard(on_redis<UnheardRelease<true>>("test-unheard-release"));
const Registration repeated(on_redis<UnheardRelease<false>>("test-unheard-repetition"));

}  // namespace
}  // namespace lockbench
