// Locks whose store seems to fail: what a play then sees is no verdict on the lock.

#include <set>

#include "strategies/redis/redlock_lock.h"
#include "tests/hazards/mutants/around.h"

namespace lockbench {
namespace {

/// The second client of a play gets no answer, nor does anybody who is refused.
class Silent : public Around {
 public:
  Silent(std::string_view around, const Context& context)
      : Around(around, context), second_(context.client == 2) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Around::acquire(request);
    if (result.lease && !second_) return result;
    if (result.lease) release(*result.lease);
    return {.outcome = AcquireOutcome::failed, .reason = "the store does not answer"};
  }

 private:
  const bool second_;
};

/// Hears of no release what became of it, or of none that is repeated.
template <bool kFirstToo>
class UnheardRelease : public Around {
 public:
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
  return {.name = name,
          .backend = backend,
          .summary = "a sound lock with one thing wrong",
          // As many as redis-getset has: its plays count them.
          .acquire_commands = {"as", "the lock that", "it goes round"},
          .release_commands = {"likewise"},
          .source = "our own",
          .traits = traits,
          .hazards = {},
          .make = [around](const Context& context) {
            return std::make_unique<Mutant>(around, context);
          }};
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

const Registration silent(described<Silent>("test-silent", "redis", "redis-set-nx-lua",
                                            with_ttl(OwnerCheck::atomic)));
const Registration confused(described<Silent>("test-silent-confused", "redis", "test-confused",
                                              with_ttl(OwnerCheck::atomic)));
const Registration getset(described<Silent>("test-silent-getset", "redis", "redis-getset",
                                            with_ttl(OwnerCheck::local_clock)));
const Registration redlock(described<Silent>("test-silent-redlock", "redis", "redlock",
                                             redis::redlock_traits()));
const Registration etcd(described<Silent>("test-silent-etcd", "etcd", "etcd", with_session()));
const Registration unheard(described<UnheardRelease<true>>("test-unheard-release", "redis",
                                                           "redis-set-nx-lua",
                                                           with_ttl(OwnerCheck::atomic)));
const Registration repeated(described<UnheardRelease<false>>("test-unheard-repetition", "redis",
                                                             "redis-set-nx-lua",
                                                             with_ttl(OwnerCheck::atomic)));

}  // namespace
}  // namespace lockbench
