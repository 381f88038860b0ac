#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// As many holders as there are permits, each with a TTL of its own. Nobody queues.
class Semaphore : public TokenLock {
 public:
  explicit Semaphore(const Context& context)
      : TokenLock(context), permits_(std::to_string(context.options.permits)) {}

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const std::string ttl = std::to_string(ceil_milliseconds(request.ttl));
    return redis().call(kNilOrTimeLeft, scripts::semaphore, {lease.key},
                        {lease.token, ttl, "acquire", permits_}, request.stop);
  }

 protected:
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    return redis().call(kFlag, scripts::semaphore, {lease.key}, {lease.token, "0", "release"},
                        stop);
  }
  std::optional<RenewalProtocol> renewal_protocol() const override {
    return RenewalProtocol{.script = &scripts::semaphore};
  }

 private:
  const std::string permits_;
};

const Registration redis_semaphore(on_redis({
    .name = "redis-semaphore",
    .summary = "A sorted set of permits, each with a TTL by Redis's clock: --permits clients hold "
               "one at once",
    .acquire_commands = {"EVALSHA semaphore key token ttl acquire permits"},
    .release_commands = {"EVALSHA semaphore key token 0 release"},
    .source = "Redisson's RPermitExpirableSemaphore; npm redis-semaphore",
    .libraries = {{"Java", "Redisson getPermitExpirableSemaphore (with other keys)",
                   "acquire with a lease time of {ttl}", Reentry::none, true},
                  {"JavaScript", "redis-semaphore Semaphore (by the client's clock)",
                   "lockTimeout = {ttl}, refreshInterval", Reentry::none, true}},
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .permits = true,
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .make = construct<Semaphore>,
}));

}  // namespace
}  // namespace lockbench::redis
