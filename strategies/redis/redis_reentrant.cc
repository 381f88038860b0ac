#include "strategies/redis/reentrant_lock.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// The owner is a number that is unique in its process only, as in the article's code: two
/// processes may take each other for themselves.
class Reentrant : public ReentrantLock {
 public:
  using ReentrantLock::ReentrantLock;

 protected:
  std::string make_token() override { return std::to_string(client()); }
};

const Registration registration(Descriptor{
    .name = "redis-reentrant",
    .backend = "redis",
    .summary = "A hash counts how often its owner, a thread's number, took it; waits by PTTL",
    .acquire_commands = {"EVALSHA reentrant_acquire key owner ttl"},
    .release_commands = {"EVALSHA reentrant_release key owner ttl"},
    .source = "article 004",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .reentrant = true,
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .hazards = without_hazards(with_ttl_hazards({{"owner-collision", HazardOutcome::double_grant}}),
                               {"reentry"}),
    .make = construct<Reentrant>,
});

}  // namespace
}  // namespace lockbench::redis
