#include "strategies/redis/reentrant_lock.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// The owner is a number that is unique within its process only, as in the article's code: clients
/// of two processes may have the same owner.
class Reentrant : public ReentrantLock {
 public:
  using ReentrantLock::ReentrantLock;

 protected:
  std::string make_token() override { return std::to_string(client()); }
};

const Registration redis_reentrant(Descriptor{
    .name = "redis-reentrant",
    .backend = "redis",
    .summary =
        "A hash counts how often its owner, a thread number, took it; waits as long as PTTL says",
    .acquire_commands = {"EVALSHA reentrant_acquire key owner ttl"},
    .release_commands = {"EVALSHA reentrant_release key owner ttl"},
    .source = "common practice: Redisson's hash, with another owner",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .reentrant = true,
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .hazards = join_hazards({{"owner-collision", HazardOutcome::double_grant}},
                            {kOverrun, kOneRedis, kKeyTtl}, {"reentry"}),
    .make = construct<Reentrant>,
});

}  // namespace
}  // namespace lockbench::redis
