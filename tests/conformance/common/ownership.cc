#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"

namespace lockbench::test {
namespace {

/// The lock has gone from one client to another, and the first does not know.
struct Succession {
  explicit Succession(const Descriptor& descriptor) : bench(descriptor, unrenewed()) {
    former = bench.client();
    AcquireResult lost = former->try_once(bench.key(), kTtl);
    if (!lost.lease) {
      trouble = unexpected(lost, AcquireOutcome::acquired);
      return;
    }
    lost_lease = *std::move(lost.lease);
    take_away();
    successor = bench.client();
    AcquireResult gained = successor->try_once(bench.key(), kTtl);
    if (!gained.lease) {
      trouble = "after a loss: " + unexpected(gained, AcquireOutcome::acquired);
      return;
    }
    successor_lease = *std::move(gained.lease);
  }

  static constexpr seconds kTtl{20};

  Bench bench;
  std::unique_ptr<Client> former, successor;
  Lease lost_lease, successor_lease;
  std::string trouble;  ///< why it did not come to pass

 private:
  /// As a failover or an operator would; a lock without a store can only be lost by a release.
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
  if (!s.trouble.empty()) return s.trouble;
  const OwnerCheck check = descriptor.traits.release_check;
  const bool unaware = check == OwnerCheck::none || check == OwnerCheck::local_clock;
  if (std::string wrong = expect_foreign_release(s, unaware); !wrong.empty()) return wrong;
  if (check != OwnerCheck::local_clock) return {};

  Succession late(descriptor);
  if (!late.trouble.empty()) return late.trouble;
  late.former->faults().skew_wall_clock(Succession::kTtl + seconds(1));
  return expect_foreign_release(late, false);
}

std::string holder_renews(const Descriptor& descriptor) {
  constexpr seconds kFirst{5}, kRenewed{50};
  Bench bench(descriptor);
  const auto holder = bench.client();
  const AcquireResult held = holder->try_once(bench.key(), kFirst);
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  const TimePoint before = held.lease->state->valid_until();
  const RenewOutcome outcome = holder->lock().renew(*held.lease, kRenewed).outcome;
  const TimePoint after = held.lease->state->valid_until();
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
  if (!end || *end <= holder->now() + 2 * kFirst)
    return "renewed, yet the store keeps the lock no longer";
  return holder->release(*held.lease) == ReleaseOutcome::released ? "" : "cannot be released";
}

std::string foreign_renewal_as_declared(const Descriptor& descriptor) {
  constexpr seconds kRenewed{200};
  Succession s(descriptor);
  if (!s.trouble.empty()) return s.trouble;
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

std::vector<Property> ownership_properties() {
  return {{"ForeignReleaseAsDeclared", excludes, foreign_release_as_declared},
          {"HolderRenewsAsDeclared", excludes, holder_renews},
          {"ForeignRenewalAsDeclared", can_renew, foreign_renewal_as_declared}};
}

}  // namespace lockbench::test
