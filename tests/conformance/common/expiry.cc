#include <algorithm>

#include "tests/conformance/common/bench.h"

namespace lockbench::test {
namespace {

/// Servers and wall clocks count in whole milliseconds.
constexpr milliseconds kTick{2};

Duration granted_ttl(const Descriptor& descriptor, Duration asked) {
  return descriptor.traits.ttl_in_seconds ? seconds(ceil_seconds(asked)) : asked;
}

/// Losers prolong the holder's TTL, so that under contention it never ends.
bool contention_prolongs(const Descriptor& descriptor) {
  return has_hazard(descriptor, "crash-holding", HazardOutcome::stuck);
}

std::string taken_after(Client& contender, const std::string& key, TimePoint end) {
  const AcquireResult next = contender.acquire(key, patience());
  const TimePoint taken = contender.now();
  if (!next.lease) return "after the TTL: " + unexpected(next, AcquireOutcome::acquired);
  if (taken < end - kTick) {
    return fmt::format("taken {:.1f} ms before the TTL had passed", in_ms(end - taken));
  }
  return {};
}

std::string taken_only_when_left_alone(Client& contender, const std::string& key, Duration ttl) {
  const AcquireResult contended = contender.acquire(key, ttl + milliseconds(300), ttl);
  if (contended.lease) return "taken under contention, which is declared to prolong the TTL";
  if (!comes_true([&] { return !shared_store().exists(key); })) return "left alone, it stays";
  (void)granted(contender.try_once(key), "left alone: ");
  return {};
}

/// Destroys the holder without a release, as in a crash.
std::string crashed_holders_lock_expires_as_declared(const Descriptor& descriptor) {
  Bench bench(descriptor, unrenewed(impatient(descriptor)));
  auto holder = bench.client();
  const auto contender = bench.client();
  // Contenders that prolong the lock must not be late.
  const seconds asked_ttl = contention_prolongs(descriptor) ? 3 * kShortTtl : kShortTtl;
  const Duration ttl = granted_ttl(descriptor, asked_ttl);
  const TimePoint asked = contender->now();
  if (!holder->try_once(bench.key(), asked_ttl).lease) return "the lock was not free";
  holder.reset();

  // The server ends it with the connection.
  if (descriptor.traits.expiry == Expiry::session)
    return taken_after(*contender, bench.key(), asked);
  if (descriptor.traits.expiry == Expiry::none) {
    const AcquireResult next = contender->acquire(bench.key(), ttl + milliseconds(100));
    return next.lease ? "a lock that is declared to have no TTL expired" : "";
  }
  if (contention_prolongs(descriptor)) {
    return taken_only_when_left_alone(*contender, bench.key(), ttl);
  }
  return taken_after(*contender, bench.key(), asked + ttl);
}

std::string check_validity(const Descriptor& descriptor, const Lease& lease, TimePoint asked,
                           Duration ttl) {
  const TimePoint valid_until = lease.state->valid_until();
  const auto end = shared_store().end_of(lease.key);
  if (!end) return "the store keeps the lock for ever, though it is declared to expire";
  if (valid_until > *end) {
    return fmt::format("valid for {:.1f} ms longer than the store keeps the lock",
                       in_ms(valid_until - *end));
  }
  if (*end < asked + ttl) return "the store keeps the lock for less than was asked";
  // Less than the TTL, by drift and the like, but not much less; by observation two thirds of it.
  const Duration drift = descriptor.traits.observed ? ttl / 3 : ttl / 10;
  if (valid_until < asked + ttl - drift - milliseconds(10)) {
    return fmt::format("valid for only {:.1f} ms", in_ms(valid_until - asked));
  }
  return {};
}

/// With slow answers, a validity counted from the answer's arrival would be too long.
std::string validity_is_no_longer_than_the_store_keeps(const Descriptor& descriptor) {
  // Not whole seconds, so that rounding down would be seen.
  constexpr milliseconds kTtl{2300}, kRenewed{3400};
  Bench bench(descriptor, unrenewed());
  const auto holder = bench.client();
  warm_up(*holder, bench.key());
  holder->faults().delay_answers(milliseconds(50));
  const TimePoint asked = holder->now();
  const Lease held = granted(holder->try_once(bench.key(), kTtl));
  if (std::string wrong = check_validity(descriptor, held, asked, granted_ttl(descriptor, kTtl));
      !wrong.empty()) {
    return wrong;
  }
  if (!descriptor.traits.renew_check) return {};
  const TimePoint renewed = holder->now();
  const RenewOutcome outcome = holder->lock().renew(held, kRenewed).outcome;
  if (outcome != RenewOutcome::renewed) return fmt::format("renew gave {}", name_of(outcome));
  const std::string wrong = check_validity(descriptor, held, renewed, kRenewed);
  return wrong.empty() ? wrong : "after a renewal: " + wrong;
}

/// An answer that takes longer than the TTL grants nothing.
std::string no_lease_is_past_its_validity(const Descriptor& descriptor) {
  Bench bench(descriptor, unrenewed());
  const auto client = bench.client();
  constexpr milliseconds kTtl{200};
  client->faults().delay_answers(granted_ttl(descriptor, kTtl) + milliseconds(50));
  const AcquireResult late = client->try_once(bench.key(), kTtl);
  if (late.lease && !late.lease->state->valid_at(client->now())) {
    return "the lease is past its validity when it is handed out";
  }
  client->faults().delay_answers({});
  (void)granted(client->acquire(bench.key(), patience()), "afterwards: ");
  return {};
}

std::string validity_has_no_end(const Descriptor& descriptor) {
  HeldBench bench(kShortTtl, descriptor);
  return bench.held.state->valid_until() == TimePoint::max()
             ? ""
             : "no TTL is declared, yet the lease's validity ends";
}

bool has_ttl(const Descriptor& descriptor) { return descriptor.traits.expiry == Expiry::ttl; }
bool has_no_ttl(const Descriptor& descriptor) { return descriptor.traits.expiry == Expiry::none; }

/// The lock has gone from one client to another without the first one's knowledge.
struct Succession {
  explicit Succession(const Descriptor& descriptor) : bench(descriptor, unrenewed()) {
    former = bench.client();
    lost_lease = granted(former->try_once(bench.key(), kTtl));
    take_away();
    successor = bench.client();
    successor_lease = granted(successor->try_once(bench.key(), kTtl), "after a loss: ");
  }

  static constexpr seconds kTtl{20};

  Bench bench;
  std::unique_ptr<Client> former, successor;
  Lease lost_lease, successor_lease;

 private:
  /// Takes the lock away, like a failover or an operator. A lock without a store can only be lost
  /// by a release.
  void take_away() {
    if (has_store(bench.descriptor())) {
      shared_store().take_away(bench.named_keys());
    } else {
      former->release(lost_lease);
    }
  }
};

std::string expect_foreign_release(Succession& s, bool frees) {
  const ReleaseOutcome wanted = frees ? ReleaseOutcome::released : ReleaseOutcome::not_owner;
  const ReleaseOutcome got = s.former->release(s.lost_lease);
  if (got != wanted) {
    return fmt::format("a former holder's release gave {}, not {}", name_of(got), name_of(wanted));
  }
  if (s.bench.is_held() == frees) {
    return frees ? "another's lock was not freed, as it is declared to be"
                 : "another's lock was freed";
  }
  const ReleaseOutcome own = s.successor->release(s.successor_lease);
  if (!frees && own != ReleaseOutcome::released) {
    return fmt::format("the holder's own release gave {}", name_of(own));
  }
  return {};
}

std::string foreign_release_as_declared(const Descriptor& descriptor) {
  Succession s(descriptor);
  const OwnerCheck check = descriptor.traits.release_check;
  const bool unaware = check == OwnerCheck::none || check == OwnerCheck::local_clock;
  if (std::string wrong = expect_foreign_release(s, unaware); !wrong.empty()) return wrong;
  if (check != OwnerCheck::local_clock) return {};

  Succession late(descriptor);
  late.former->faults().skew_wall_clock(Succession::kTtl + seconds(1));
  return expect_foreign_release(late, false);
}

std::string holder_renews(const Descriptor& descriptor) {
  constexpr seconds kFirst{5}, kRenewed{50};
  HeldBench bench(kFirst, descriptor);
  const TimePoint before = bench.held.state->valid_until();
  const RenewOutcome outcome = bench.holder->lock().renew(bench.held, kRenewed).outcome;
  const TimePoint after = bench.held.state->valid_until();
  if (!descriptor.traits.renew_check) {
    if (outcome != RenewOutcome::unsupported) {
      return fmt::format("renew gave {}, not unsupported", name_of(outcome));
    }
    return before == after ? "" : "unsupported, yet the validity moved";
  }
  if (outcome != RenewOutcome::renewed) {
    return fmt::format("the holder's renewal gave {}", name_of(outcome));
  }
  if (after < before + (kRenewed - kFirst) / 2) return "renewed, yet the validity hardly moved";
  const auto end = shared_store().end_of(bench.key());
  if (!end || *end <= bench.holder->now() + 2 * kFirst)
    return "renewed, yet the store keeps the lock no longer";
  return bench.holder->release(bench.held) == ReleaseOutcome::released ? "" : "cannot be released";
}

std::string foreign_renewal_as_declared(const Descriptor& descriptor) {
  constexpr seconds kRenewed{200};
  Succession s(descriptor);
  const bool unaware = descriptor.traits.renew_check == OwnerCheck::none;
  const RenewOutcome wanted = unaware ? RenewOutcome::renewed : RenewOutcome::not_owner;
  const RenewOutcome got = s.former->lock().renew(s.lost_lease, kRenewed).outcome;
  if (got != wanted) {
    return fmt::format("a former holder's renewal gave {}, not {}", name_of(got), name_of(wanted));
  }
  const auto end = shared_store().end_of(s.bench.key());
  const bool prolonged = end && *end > s.former->now() + 2 * Succession::kTtl;
  if (prolonged != unaware) {
    return unaware ? "another's lock was not prolonged, as it is declared to be"
                   : "another's lock was prolonged";
  }
  if (!unaware && !s.lost_lease.state->lost_at()) return "the lease does not know that it is lost";
  if (s.successor_lease.state->lost_at()) return "the holder's lease counts as lost";
  return {};
}

bool can_renew(const Descriptor& descriptor) { return descriptor.traits.renew_check.has_value(); }

}  // namespace

std::vector<Property> expiry_properties() {
  return {
      {"CrashedHoldersLockExpiresAsDeclared", excludes, crashed_holders_lock_expires_as_declared},
      {"ValidityIsNoLongerThanTheStoreKeeps", has_ttl, validity_is_no_longer_than_the_store_keeps},
      {"NoLeaseIsPastItsValidity", has_ttl, no_lease_is_past_its_validity},
      {"ValidityHasNoEnd", has_no_ttl, validity_has_no_end},
      {"ForeignReleaseAsDeclared", excludes, foreign_release_as_declared},
      {"HolderRenewsAsDeclared", excludes, holder_renews},
      {"ForeignRenewalAsDeclared", can_renew, foreign_renewal_as_declared}};
}

}  // namespace lockbench::test
