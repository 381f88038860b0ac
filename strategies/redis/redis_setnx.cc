#include <utility>

#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// The oldest form: the client that creates the key has the lock, and keeps it for ever if it dies.
/// With a TokenLock the value names the owner, so that no other client can release it.
template <class Base>
class Setnx : public Base {
 public:
  using Base::Base;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    return this->set_nx(lease.key, lease.token.empty() ? "1" : lease.token, request.stop);
  }

 protected:
  Duration validity(Duration /*ttl*/) const override { return Duration::max(); }
  std::optional<RenewalProtocol> renewal_protocol() const override { return std::nullopt; }
};

/// With what is common to the forms that SET NX PX has replaced.
Descriptor old_form(Descriptor form) {
  form.source = "common practice";
  form.superseded_by = "redis-set-nx-lua";
  form.superseded_because = form.traits.expiry == Expiry::none
                                ? "it never expires: a crash leaves it locked"
                                : "SET NX PX does both in one command since Redis 2.6.12";
  form.traits.waiting_choices = kWaitingChoices;
  return on_redis(std::move(form));
}

const Registration redis_setnx(old_form({
    .name = "redis-setnx",
    .summary = "SETNX and DEL, no TTL: a crashed holder blocks all clients for ever",
    .acquire_commands = {"SETNX key 1"},
    .release_commands = {"DEL key"},
    .traits = {.expiry = Expiry::none, .release_check = OwnerCheck::none},
    .make = construct<Setnx<UncheckedLock>>,
}));

const Registration redis_setnx_token(old_form({
    .name = "redis-setnx-token",
    .summary = "SETNX with the owner's token, released by a script that checks it; no TTL",
    .acquire_commands = {"SETNX key token"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .traits = {.expiry = Expiry::none, .release_check = OwnerCheck::atomic},
    .make = construct<Setnx<TokenLock>>,
}));

/// SETNX, and if that succeeded EXPIRE: a client that dies between the two leaves a lock without
/// TTL.
class SetnxExpire : public UncheckedLock {
 public:
  using UncheckedLock::UncheckedLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const auto set = set_nx(lease.key, "1", request.stop);
    if (!set || !*set) return set;
    begin_validity();
    const std::string seconds = std::to_string(ceil_seconds(request.ttl));
    auto expires = redis().call(kFlag, {"EXPIRE", lease.key, seconds}, request.stop);
    // The lock is held, perhaps without a TTL.
    if (!expires) expires.error().kind = StoreError::Kind::unanswered;
    return expires;  // false: the key is gone already
  }

 protected:
  Duration validity(Duration ttl) const override { return std::chrono::seconds(ceil_seconds(ttl)); }
};

const Registration redis_setnx_expire(old_form({
    .name = "redis-setnx-expire",
    .summary =
        "SETNX, then EXPIRE as a second step (whole seconds): a crash in between blocks for ever",
    .acquire_commands = {"SETNX key 1", "EXPIRE key seconds"},
    .release_commands = {"DEL key"},
    .traits = {.release_check = OwnerCheck::none,
               .renew_check = OwnerCheck::none,
               .ttl_in_seconds = true,
               .renewable = true},
    .hazards = {{"crash-mid-acquire", HazardOutcome::stuck}},
    .make = construct<SetnxExpire>,
}));

constexpr Form<bool> kQueued{"QUEUED", [](const Reply& reply) {
                               return reply.is_text("QUEUED") ? std::optional(true) : std::nullopt;
                             }};

/// The answer to EXEC: whether SETNX set the key.
constexpr Form<bool> kBothDone{
    "the answers of SETNX and EXPIRE", [](const Reply& reply) -> std::optional<bool> {
      if (reply.type != Reply::Type::array || reply.elements.size() != 2) return std::nullopt;
      return kFlag.read(reply.elements[1]) ? kFlag.read(reply.elements[0]) : std::nullopt;
    }};

/// SETNX and EXPIRE in one transaction. EXPIRE runs even if SETNX was refused, so every refused
/// client extends the holder's TTL.
class SetnxExpireMulti : public SetnxExpire {
 public:
  using SetnxExpire::SetnxExpire;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    redis().queue({"MULTI"});
    redis().queue({"SETNX", lease.key, "1"});
    redis().queue({"EXPIRE", lease.key, std::to_string(ceil_seconds(request.ttl))});
    redis().queue({"EXEC"});
    auto begun = redis().read(kOk, "MULTI", redis().receive(request.stop));
    auto set = redis().read(kQueued, "SETNX", redis().receive(request.stop));
    auto expires = redis().read(kQueued, "EXPIRE", redis().receive(request.stop));
    auto done = redis().read(kBothDone, "EXEC", redis().receive(request.stop));
    if (!begun && begun.error().kind == StoreError::Kind::rejected) {
      // The other commands ran without a transaction: the state is unknown.
      begun.error().kind = StoreError::Kind::unanswered;
    }
    for (auto* const answer : {&begun, &set, &expires, &done}) {
      if (!*answer) return tl::unexpected(std::move(answer->error()));
    }
    return done;
  }
};

const Registration redis_setnx_expire_multi(old_form({
    .name = "redis-setnx-expire-multi",
    .summary = "SETNX and EXPIRE in MULTI (whole seconds): refused clients extend the holder's TTL",
    .acquire_commands = {"MULTI", "SETNX key 1", "EXPIRE key seconds", "EXEC"},
    .release_commands = {"DEL key"},
    .traits = {.release_check = OwnerCheck::none,
               .renew_check = OwnerCheck::none,
               // Refused clients that keep asking keep extending the TTL: a crash blocks for ever,
               // and no overrun happens.
               .prolonged_by_contenders = true,
               .ttl_in_seconds = true,
               .renewable = true},
    .make = construct<SetnxExpireMulti>,
}));

}  // namespace
}  // namespace lockbench::redis
