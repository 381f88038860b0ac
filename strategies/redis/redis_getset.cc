#include "strategies/redis/getset_lock.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// Article 000's second form, by its text: takes over if the value that GETSET replaced has expired
/// too. (Its code does not store the expiry after SETNX and would never release.)
class Getset : public GetsetLock {
 public:
  using GetsetLock::GetsetLock;

 protected:
  bool takes_over(const std::string& /*seen*/,
                  const std::optional<std::string>& replaced) override {
    // Nothing was replaced: the lock was released between GET and GETSET.
    return !replaced || has_passed(*replaced);
  }
};

const Registration redis_getset(Descriptor{
    .name = "redis-getset",
    .backend = "redis",
    .summary = "The value is the expiry time; expired locks are taken over by GETSET: relies on "
               "all clients' clocks",
    .acquire_commands = {"SETNX key now+ttl", "GET key", "GETSET key now+ttl"},
    .release_commands = {"DEL key"},
    .source = "common practice: the pattern of redis.io \"SETNX\" without its last check",
    .superseded_by = "redis-set-nx-lua",
    .superseded_because = "it trusts the clocks of all clients",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::local_clock,
               .waiting_choices = kWaitingChoices},
    .hazards = getset_hazards(),
    .make = construct<Getset>,
});

}  // namespace
}  // namespace lockbench::redis
