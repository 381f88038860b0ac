#include "strategies/redis/getset_lock.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// Article 000's second form, by its prose: takes over if the value that GETSET replaced has passed
/// too. (Its printed code forgets to note the expiry after SETNX, and so would never release.)
class Getset : public GetsetLock {
 public:
  using GetsetLock::GetsetLock;

 protected:
  bool takes_over(const Reply& /*seen*/, const Reply& replaced) override {
    // Nothing replaced: freed between GET and GETSET.
    return replaced.is_nil() || has_passed(replaced);
  }
};

const Registration registration(Descriptor{
    .name = "redis-getset",
    .backend = "redis",
    .summary = "The expiry as the value, taken over by GETSET: trusts every client's clock",
    .acquire_commands = {"SETNX key now+ttl", "GET key", "GETSET key now+ttl"},
    .release_commands = {"DEL key"},
    .source = "article 000",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::local_clock,
               .waiting_choices = kWaitingChoices},
    .hazards = getset_hazards(),
    .make = construct<Getset>,
});

}  // namespace
}  // namespace lockbench::redis
