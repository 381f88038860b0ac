#include <limits>

#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

constexpr std::string_view kCounter = ":fencing";

/// 0 for nil.
constexpr Form<std::int64_t> kNumberOrNil{
    "a fencing number or nil", [](const Reply& reply) {
      return reply.is_nil() ? std::optional<std::int64_t>(0)
                            : number_in(reply, 1, std::numeric_limits<std::int64_t>::max());
    }};

/// Every grant carries a higher number. A resource that remembers the highest number so far can
/// reject a client that has lost the lock and does not know it yet.
class Fenced : public TokenLock {
 public:
  using TokenLock::TokenLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const std::string ttl = std::to_string(ceil_milliseconds(request.ttl));
    const std::string counter = lease.key + std::string(kCounter);
    const auto number = redis().call(kNumberOrNil, scripts::fenced_acquire, {lease.key, counter},
                                     {lease.token, ttl}, request.stop);
    if (!number) return tl::unexpected(number.error());
    lease.fencing = static_cast<std::uint64_t>(*number);
    return *number > 0;
  }
};

const Registration redis_fenced(on_redis({
    .name = "redis-fenced",
    .summary = "SET NX PX and INCR in one script: each grant carries a growing fencing number",
    .acquire_commands = {"EVALSHA fenced_acquire key key:fencing token ttl"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "Martin Kleppmann, \"How to do distributed locking\"",
    .libraries = {{"Java", "Redisson getFencedLock", "lockAndGetToken with a lease time of {ttl}",
                   Reentry::counted}},
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .fencing = true,
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .make = construct<Fenced>,
    .key_suffixes = {"", kCounter},
}));

}  // namespace
}  // namespace lockbench::redis
