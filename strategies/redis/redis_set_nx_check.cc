#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <set>
#include <string>

#include "strategies/redis/client/answers.h"
#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

std::string host_and_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{}:{}", host.data(), ::getpid());
}

/// SET NX PX with a value that names the owner; the release reads it and then deletes the key, and
/// between these two steps the lock may be granted to another client.
class SetNxCheck : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    auto tried = set_nx_px(request, lease, lease.token);
    if (tried && tried->granted) held_.insert(lease.key);
    return tried;
  }

  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    held_.erase(lease.key);
    const auto owner = redis().call(kTextOrNil, {"GET", lease.key}, stop);
    if (!owner) return tl::unexpected(owner.error());
    return *owner == lease.token ? release_unchecked(redis(), lease, stop) : false;
  }

  RenewResult renew(const Lease& lease, Duration ttl) override {
    const auto owner = redis().call(kTextOrNil, {"GET", lease.key});
    if (!owner) return {RenewOutcome::failed, owner.error().message};
    if (*owner == lease.token) return renew_unchecked(redis(), env(), lease, ttl);
    lease.state->mark_lost(env().now());
    return {RenewOutcome::not_owner, {}};
  }

 protected:
  /// By the token alone, what this client holds already would pass for what it asked for in vain.
  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override {
    if (held_.contains(lease.key)) return false;
    return give_back(lease, stop);
  }
  StoreResult<bool> decline(const Lease& lease, const std::stop_token& stop) override {
    return give_back(lease, stop);
  }

  /// The client's name, which is the same for all its acquisitions.
  std::string make_token() override { return fmt::format("{}:{}", process_, client()); }

 private:
  const std::string process_ = host_and_process();
  std::set<std::string> held_;  ///< keys, until they are released
};

const Registration redis_set_nx_check(Descriptor{
    .name = "redis-set-nx-check",
    .backend = "redis",
    .summary = "SET NX PX with host:process:thread, released by GET and then DEL: two steps",
    .acquire_commands = {"SET key token NX PX ttl"},
    .release_commands = {"GET key", "DEL key"},
    .source = "common practice",
    .superseded_by = "redis-set-nx-lua",
    .superseded_because = "between its check and its release the lock can change hands",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::two_steps,
               .renew_check = OwnerCheck::two_steps,
               .waiting_choices = kWaitingChoices},
    .hazards = join_hazards({{"release-race", HazardOutcome::foreign_release}},
                            {kOverrun, kOneRedis, kKeyTtl}),
    .make = construct<SetNxCheck>,
});

}  // namespace
}  // namespace lockbench::redis
