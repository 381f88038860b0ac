#include "strategies/redis/getset_lock.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// As redis-getset, but takes over only if GETSET replaced the value that GET saw (article 002).
class GetsetCas : public GetsetLock {
 public:
  using GetsetLock::GetsetLock;

 protected:
  bool takes_over(const std::string& seen, const std::optional<std::string>& replaced) override {
    return replaced == seen;
  }
};

const Registration redis_getset_cas(Descriptor{
    .name = "redis-getset-cas",
    .backend = "redis",
    .summary = "As redis-getset, granted only if GETSET replaced the value that GET saw",
    .acquire_commands = {"SETNX key now+ttl", "GET key", "GETSET key now+ttl"},
    .release_commands = {"DEL key"},
    .source = "redis.io \"SETNX\", \"Design pattern: Locking with SETNX\"",
    .superseded_by = "redis-set-nx-lua",
    .superseded_because = "it trusts the clocks of all clients",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::local_clock,
               .waiting_choices = kWaitingChoices},
    .hazards = getset_hazards(),
    .make = construct<GetsetCas>,
});

}  // namespace
}  // namespace lockbench::redis
