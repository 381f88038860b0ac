// Locks with one defect that declare a correct lock's outcomes: the plays must detect the
// difference. They register themselves in the programs that they are linked into.

#include <map>
#include <set>

#include "strategies/redis/redlock_lock.h"
#include "strategies/redis/scripts.h"
#include "tests/support/around.h"
#include "tests/support/plain_redlock.h"
#include "tests/support/token_mutants.h"

namespace lockbench::redis {
namespace {

/// Releases without checking the owner.
struct UncheckedRelease : TokenLock {
  using TokenLock::TokenLock;
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    return redis().call(kFlag, {"DEL", lease.key}, stop);
  }
};

/// Treats its lease as valid for a little too long.
struct Overstays : TokenLock {
  using TokenLock::TokenLock;
  Duration validity(Duration ttl) const override { return ttl + std::chrono::milliseconds(200); }
};

/// Goes on asking the server that had the key first, whatever it answers.
class IgnoresRedirects : public TokenLock {
 public:
  explicit IgnoresRedirects(const Context& context)
      : TokenLock(context),
        factory_(context.services.get_or_make<ConnectionFactory>(make_connection_factory)),
        timeouts_(context.options.timeouts()) {}

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const std::string ttl = std::to_string(ceil_milliseconds(request.ttl));
    return first_server(lease.key)
        .call(kOkOrNil, {"SET", lease.key, lease.token, "NX", "PX", ttl}, request.stop)
        .map([](bool set) { return TryResult(set); });
  }
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    return first_server(lease.key).call(kFlag, scripts::release_if_token, {lease.key},
                                        {lease.token}, stop);
  }

 private:
  Connection& first_server(const std::string& key) {
    auto& server = servers_[key];
    if (!server) server = factory_.make(redis().server_of(key).value(), timeouts_, env());
    return *server;
  }

  ConnectionFactory& factory_;
  const Timeouts timeouts_;
  std::map<std::string, std::unique_ptr<Connection>> servers_;
};

/// Waits for the replicas, but does not send them its key.
struct KeepsToThePrimary : TokenLock {
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

/// Mistakes the end of a wait for a grant, without trying again.
struct SkipsTheRecheck : TokenLock {
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
struct Flickers : TokenLock {
  using TokenLock::TokenLock;
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    const std::size_t number = lease.key.find('{') + 1;
    const bool careless = std::stoul(lease.key.substr(number)) % 2 == 0;
    return careless ? redis().call(kFlag, {"DEL", lease.key}) : TokenLock::give_back(lease, stop);
  }
};

/// Its fencing numbers decrease.
struct CountsDown : TokenLock {
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

/// Identifies owners by client number, and does not count acquisitions.
struct Confused : TokenLock {
  using TokenLock::TokenLock;
  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    auto tried = TokenLock::try_acquire(request, lease);
    if (!tried || tried->granted) return tried;
    const auto owner = redis().call({"GET", lease.key}, request.stop);
    if (!owner) return tl::unexpected(owner.error());
    return owner->is_text(lease.token);
  }

  std::string make_token() override { return std::to_string(client()); }
};

/// Takes away the TTL before it releases or renews, as a mark, and tries each release only once.
struct MarksFirst : TokenLock {
  using TokenLock::TokenLock;
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    if (!released_.insert(lease.token).second) return false;
    const auto marked = redis().call(kFlag, {"PERSIST", lease.key}, stop);
    return marked ? TokenLock::give_back(lease, stop) : marked;
  }

  RenewResult renew(const Lease& lease, Duration ttl) override {
    (void)redis().call(kFlag, {"PERSIST", lease.key});
    return TokenLock::renew(lease, ttl);
  }

 private:
  std::set<std::string> released_;
};

/// Takes a grant that came too late for none, and keeps it.
class TurnsItsBack : public Around {
 public:
  explicit TurnsItsBack(const Context& context)
      : Around("redis-set-nx-lua", context), env_(context.env) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    const bool may_wait = request.deadline > env_.now();
    AcquireResult result = Around::acquire(request);
    if (!may_wait || env_.now() < request.deadline) return result;
    return {.outcome = AcquireOutcome::timed_out, .attempts = result.attempts};
  }

 private:
  Env& env_;
};

/// Grants every request.
struct Blind : TokenLock {
  using TokenLock::TokenLock;
  StoreResult<TryResult> try_acquire(const AcquireRequest&, Lease&) override { return true; }
};

/// A session mutant applied to a lock on Redis.
template <class Mutant>
class OnRedis : public Mutant {
 public:
  explicit OnRedis(const Context& context) : Mutant("redis-set-nx-lua", context) {}
};

template <class Mutant>
Descriptor described(std::string_view name) {
  return with_known_hazards(mutant(name, "redis",
                                   {.expiry = Expiry::ttl,
                                    .release_check = OwnerCheck::atomic,
                                    .renew_check = OwnerCheck::atomic,
                                    .renewable = true,
                                    .waiting_choices = kWaitingChoices},
                                   construct<Mutant>));
}

/// The same lock with changed traits.
Descriptor with(Descriptor made, void (*change)(Traits&)) {
  change(made.traits);
  made.hazards.clear();
  return with_known_hazards(std::move(made));
}

void numbers(Traits& traits) { traits.fencing = true; }
void replicas(Traits& traits) { traits.needs_replicas = true; }
void timer(Traits& traits) { traits.renews = RenewalTiming{}; }

RenewResult renew_by_script(Connection& redis, Env& env, const Lease& lease, Duration ttl) {
  const TimePoint asked_at = env.now();
  const auto renewed = redis.call(kFlag, scripts::renew_if_token, {lease.key},
                                  {lease.token, std::to_string(ceil_milliseconds(ttl))});
  return to_renew_result(renewed, lease, env, asked_at, ttl);
}

/// Claims a renewal timer in its traits but has none.
struct ForgetsToRenew : TokenLock {
  using TokenLock::TokenLock;
  RenewResult renew(const Lease& lease, Duration ttl) override {
    return renew_by_script(redis(), env(), lease, ttl);
  }

  std::optional<RenewalProtocol> renewal_protocol() const override { return std::nullopt; }
};

/// Like ForgetsToRenew, but never expires.
struct Endless : test::NeverExpires {
  using NeverExpires::NeverExpires;
  RenewResult renew(const Lease& lease, Duration ttl) override {
    return renew_by_script(redis(), env(), lease, ttl);
  }

  std::optional<RenewalProtocol> renewal_protocol() const override { return std::nullopt; }
};

const Registration sound(described<TokenLock>("test-sound"));
const Registration unchecked_release(described<UncheckedRelease>("test-unchecked-release"));
const Registration unchecked_renewal(described<test::RenewsUnchecked>("test-unchecked-renewal"));
const Registration hasty(with(described<SkipsTheRecheck>("test-skips-the-recheck"), timer));
const Registration trusting(described<OnRedis<NeverDoubts>>("test-never-doubts"));
const Registration stubborn(described<IgnoresRedirects>("test-ignores-redirects"));
const Registration unreplicated(with(described<KeepsToThePrimary>("test-unreplicated"), replicas));
const Registration overstaying(described<Overstays>("test-overstays"));
const Registration flickering(described<Flickers>("test-flickers"));
const Registration untidy(described<test::DoesNotTidyUp>("test-untidy"));
const Registration same_number(with(described<OnRedis<SameNumber>>("test-same-number"), numbers));
const Registration counts_down(with(described<CountsDown>("test-counts-down"), numbers));
const Registration eternal(described<test::NeverExpires>("test-eternal"));
const Registration confused(described<Confused>("test-confused"));
const Registration blind(described<Blind>("test-blind"));
const Registration marks_first(described<MarksFirst>("test-marks-first"));
const Registration turned_away(described<TurnsItsBack>("test-turns-its-back"));
const Registration unshaken(with(described<OnRedis<NeverDoubts>>("test-renewed-never-doubts"),
                                 timer));
const Registration forgetful(with(described<ForgetsToRenew>("test-forgets-to-renew"), timer));
const Registration endless(with(described<Endless>("test-endless"), timer));

using Flaws = test::RedlockFlaws;

template <Flaws kFlaws>
Descriptor redlock(std::string_view name) {
  return with_known_hazards(
      mutant(name, "redis", redlock_traits(), construct<test::PlainRedlock<kFlaws>>));
}

/// Claims to live on a quorum, but uses its first node only.
const Registration one_of_five(with_known_hazards(mutant("test-one-of-five", "redis",
                                                         redlock_traits(), construct<TokenLock>)));
const Registration sound_redlock(redlock<Flaws{}>("test-redlock"));
const Registration minority(redlock<Flaws{.minority_wins = true}>("test-redlock-minority"));
const Registration late(redlock<Flaws{.ignores_validity = true}>("test-redlock-late"));
const Registration unanimous(redlock<Flaws{.unanimous = true}>("test-redlock-unanimous"));
const Registration hoarding(redlock<Flaws{.hoards = true}>("test-redlock-hoarding"));

}  // namespace
}  // namespace lockbench::redis
