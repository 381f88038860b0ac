// Locks with one defect that declare what a correct lock does: the plays must detect the
// difference. They register themselves in the programs that they are linked into.

#include "strategies/redis/client/protocol.h"
#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"
#include "tests/hazards/mutants/around.h"

namespace lockbench::redis {
namespace {

/// Releases without checking the owner.
class UncheckedRelease : public TokenLock {
 public:
  using TokenLock::TokenLock;

 protected:
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    return redis().call(kFlag, {"DEL", lease.key}, stop);
  }
};

class UncheckedRenewal : public TokenLock {
 public:
  using TokenLock::TokenLock;

 protected:
  std::optional<RenewalProtocol> renewal_protocol() const override { return RenewalProtocol{}; }
};

/// Treats its lease as valid for a little too long.
class Overstays : public TokenLock {
 public:
  using TokenLock::TokenLock;

 protected:
  Duration validity(Duration ttl) const override { return ttl + std::chrono::milliseconds(200); }
};

/// Waits for the replicas, but does not send them its key.
class KeepsToThePrimary : public TokenLock {
 public:
  using TokenLock::TokenLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    constexpr std::string_view kSet =
        "redis.set_repl(redis.REPL_NONE) "
        "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";
    const auto set = redis().call(
        {"EVAL", kSet, "1", lease.key, lease.token, std::to_string(ceil_milliseconds(request.ttl))},
        request.stop);
    if (!set) return tl::unexpected(set.error());
    if (!set->is_text("OK")) return false;
    const auto acknowledged = redis().call({"WAIT", "1", "1000"}, request.stop);
    if (!acknowledged) return tl::unexpected(acknowledged.error());
    return acknowledged->integer >= 1;
  }
};

/// Takes the end of a wait for a grant, without trying again.
class SkipsTheRecheck : public TokenLock {
 public:
  using TokenLock::TokenLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    if (lease.key == waited_for_) return true;
    waited_for_ = lease.key;
    return TokenLock::try_acquire(request, lease);
  }

 private:
  std::string waited_for_;
};

/// Checks the owner in every second play only: keys are numbered.
class Flickers : public TokenLock {
 public:
  using TokenLock::TokenLock;

 protected:
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    const std::size_t number = lease.key.find('{') + 1;
    const bool careless = std::stoul(lease.key.substr(number)) % 2 == 0;
    return careless ? redis().call(kFlag, {"DEL", lease.key}) : TokenLock::give_back(lease, stop);
  }
};

/// Does not clean up after an acquisition with unknown outcome.
class Untidy : public TokenLock {
 public:
  using TokenLock::TokenLock;

 protected:
  StoreResult<bool> undo(const Lease& /*lease*/, const std::stop_token& /*stop*/) override {
    return false;
  }
};

/// Its fencing numbers decrease.
class CountsDown : public TokenLock {
 public:
  using TokenLock::TokenLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    constexpr std::int64_t kFirst = 1000;
    auto tried = TokenLock::try_acquire(request, lease);
    if (!tried || !tried->granted) return tried;
    const auto counted = redis().call({"DECR", lease.key + ":number"}, request.stop);
    if (!counted) return tl::unexpected(counted.error());
    lease.fencing = static_cast<std::uint64_t>(kFirst + counted->integer);
    return true;
  }
};

/// Never expires.
class Eternal : public TokenLock {
 public:
  using TokenLock::TokenLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    return redis().call(kOkOrNil, {"SET", lease.key, lease.token, "NX"}, request.stop);
  }
};

/// Identifies owners by client number, and does not count acquisitions.
class Confused : public TokenLock {
 public:
  using TokenLock::TokenLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    auto tried = TokenLock::try_acquire(request, lease);
    if (!tried || tried->granted) return tried;
    const auto owner = redis().call({"GET", lease.key}, request.stop);
    if (!owner) return tl::unexpected(owner.error());
    return owner->is_text(lease.token);
  }

 protected:
  std::string make_token() override { return std::to_string(client()); }
};

/// Grants every request.
class Blind : public TokenLock {
 public:
  using TokenLock::TokenLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest&, Lease&) override { return true; }
};

/// A defect of sessions too, of a lock on Redis.
template <class Mutant>
class OnRedis : public Mutant {
 public:
  explicit OnRedis(const Context& context) : Mutant("redis-set-nx-lua", context) {}
};

template <class Mutant>
Descriptor described(std::string_view name) {
  return with_known_hazards({.name = name,
                             .backend = "redis",
                             .summary = "a correct lock with one defect",
                             .acquire_commands = {"SET key token NX PX ttl"},
                             .release_commands = {"EVALSHA release_if_token key token"},
                             .source = "our own",
                             .traits = {.expiry = Expiry::ttl,
                                        .release_check = OwnerCheck::atomic,
                                        .renew_check = OwnerCheck::atomic,
                                        .renewable = true,
                                        .waiting_choices = kWaitingChoices},
                             .make = construct<Mutant>});
}

Descriptor with_traits(Descriptor mutant, void (*change)(Traits&)) {
  change(mutant.traits);
  mutant.hazards.clear();
  return with_known_hazards(std::move(mutant));
}

Descriptor with_numbers(Descriptor mutant) {
  return with_traits(std::move(mutant), [](Traits& traits) { traits.fencing = true; });
}

Descriptor with_replicas(Descriptor mutant) {
  return with_traits(std::move(mutant), [](Traits& traits) { traits.needs_replicas = true; });
}

Descriptor with_timer(Descriptor mutant) {
  return with_traits(std::move(mutant), [](Traits& traits) { traits.renews = RenewalTiming{}; });
}

RenewResult renew_by_script(Connection& redis, Env& env, const Lease& lease, Duration ttl) {
  const TimePoint asked_at = env.now();
  const auto renewed = redis.call(kFlag, scripts::renew_if_token, {lease.key},
                                  {lease.token, std::to_string(ceil_milliseconds(ttl))});
  return to_renew_result(renewed, lease, env, asked_at, ttl);
}

/// Claims a renewal timer in its traits but has none.
class ForgetsToRenew : public TokenLock {
 public:
  using TokenLock::TokenLock;
  RenewResult renew(const Lease& lease, Duration ttl) override {
    return renew_by_script(redis(), env(), lease, ttl);
  }

 protected:
  std::optional<RenewalProtocol> renewal_protocol() const override { return std::nullopt; }
};

/// As ForgetsToRenew, but never expires.
class Endless : public Eternal {
 public:
  using Eternal::Eternal;
  RenewResult renew(const Lease& lease, Duration ttl) override {
    return renew_by_script(redis(), env(), lease, ttl);
  }

 protected:
  std::optional<RenewalProtocol> renewal_protocol() const override { return std::nullopt; }
};

const Registration sound(described<TokenLock>("test-sound"));
const Registration unchecked_release(described<UncheckedRelease>("test-unchecked-release"));
const Registration unchecked_renewal(described<UncheckedRenewal>("test-unchecked-renewal"));
const Registration hasty(with_timer(described<SkipsTheRecheck>("test-skips-the-recheck")));
const Registration trusting(described<OnRedis<NeverDoubts>>("test-never-doubts"));
const Registration unreplicated(with_replicas(described<KeepsToThePrimary>("test-unreplicated")));
const Registration overstaying(described<Overstays>("test-overstays"));
const Registration flickering(described<Flickers>("test-flickers"));
const Registration untidy(described<Untidy>("test-untidy"));
const Registration same_number(with_numbers(described<OnRedis<SameNumber>>("test-same-number")));
const Registration counts_down(with_numbers(described<CountsDown>("test-counts-down")));
const Registration eternal(described<Eternal>("test-eternal"));
const Registration confused(described<Confused>("test-confused"));
const Registration blind(described<Blind>("test-blind"));
const Registration forgetful(with_timer(described<ForgetsToRenew>("test-forgets-to-renew")));

const Registration endless(with_timer(described<Endless>("test-endless")));

}  // namespace
}  // namespace lockbench::redis
