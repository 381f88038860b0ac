#include <fmt/format.h>

#include "strategies/redis/reentrant_lock.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// Identifies this process among all others.
struct ProcessId {
  std::string text;
};

/// Redisson's lock on a single server (with replicas it would wait for them): the owner is unique,
/// a timer renews it, and a release notifies waiting clients.
class ReentrantNotify : public ReentrantLock {
 public:
  explicit ReentrantNotify(const Context& context)
      : ReentrantLock(context),
        owner_(fmt::format("{}:{}",
                           context.services
                               .get_or_make<ProcessId>([&] {
                                 return std::make_shared<ProcessId>(
                                     ProcessId{random_token(context.env)});
                               })
                               .text,
                           context.client)) {}

 protected:
  std::string make_token() override { return owner_; }

 private:
  const std::string owner_;
};

const Registration registration(Descriptor{
    .name = "redis-reentrant-notify",
    .backend = "redis",
    .summary = "Redisson's lock on a single server: re-entrant, renewed, a release wakes waiting "
               "clients by PUBLISH",
    .acquire_commands = {"EVALSHA reentrant_acquire key owner ttl", "SUBSCRIBE channel",
                         "UNSUBSCRIBE channel"},
    .release_commands = {"EVALSHA reentrant_release key owner ttl channel"},
    .renew_commands = {"EVALSHA reentrant_renew key owner ttl"},
    .source = "article 004; Redisson's RLock and LockPubSub",
    .typical = true,
    .libraries = {{"Java", "Redisson RLock", "lockWatchdogTimeout = {ttl}"}},
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .reentrant = true,
               .renews = RenewalTiming{},
               .renewable = true,
               .waiting = WaitPolicy::notify(),
               .waiting_choices = {}},
    .hazards = join_hazards({}, {kRenewed, kOneRedis, kKeyTtl}, {"reentry"}),
    .make = construct<ReentrantNotify>,
});

}  // namespace
}  // namespace lockbench::redis
