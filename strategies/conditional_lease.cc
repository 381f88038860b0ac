#include "strategies/conditional_lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "strategies/waiting/retry.h"

namespace lockbench {
namespace {

/// A holder's release and its renewal timer can only meet once; the rest is for lost answers.
constexpr int kAttempts = 3;

/// Reads the item and writes its next value if the token holds it: renewed, or without a TTL
/// released. False if the token does not hold it.
StoreResult<bool> change_own(VersionedStore& store, const LeaseForm& form, const std::string& key,
                             std::string_view token, std::optional<Duration> ttl,
                             const std::stop_token& stop) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto item = store.get(key, stop);
    if (!item) return tl::unexpected(item.error());
    if (!*item || !form.held_by((*item)->value, token)) return false;
    const std::string& value = (*item)->value;
    const std::string next = ttl ? form.renewed(value, *ttl) : form.released(value);
    const Duration lasts = form.expires ? ttl.value_or(Duration::zero()) : Duration::max();
    auto changed = store.put({.key = key, .value = next, .ttl = lasts, .over = &**item}, stop);
    if (!changed || *changed) return changed;
  }
  return failure_at(store.display(), StoreError::Kind::rejected, "the item keeps changing");
}

/// Renews one lease after the other: each takes two round trips, as the second depends on the
/// first.
class ConditionalRenewals : public RenewalChannel {
 public:
  ConditionalRenewals(std::unique_ptr<VersionedStore> store, const LeaseForm& form)
      : store_(std::move(store)), form_(form) {}

  void queue(std::string_view key, std::string_view token, Duration ttl) override {
    queued_.push_back({std::string(key), std::string(token), ttl});
  }
  void flush(const std::stop_token& /*stop*/) override { broken_ = false; }
  RenewalAnswer answer(const std::stop_token& stop) override {
    const Order order = std::move(queued_.front());
    queued_.pop_front();
    // A store that does not answer holds up a batch for one timeout only.
    if (broken_) return RenewalAnswer::failed;
    const auto renewed = change_own(*store_, form_, order.key, order.token, order.ttl, stop);
    if (renewed) return *renewed ? RenewalAnswer::renewed : RenewalAnswer::not_owner;
    failure_ = renewed.error().message;
    broken_ = true;
    return RenewalAnswer::failed;
  }
  std::string failure() const override { return failure_; }

 private:
  struct Order {
    std::string key, token;
    Duration ttl{};
  };

  const std::unique_ptr<VersionedStore> store_;
  const LeaseForm& form_;
  std::deque<Order> queued_;
  bool broken_ = false;  ///< since the latest flush
  std::string failure_;
};

}  // namespace

ConditionalLease::ConditionalLease(const Context& context, MakeStore make, const LeaseForm& form)
    : env_(context.env),
      services_(context.services),
      options_(context.options),
      waiting_(context.waiting),
      renewing_(context.renewing),
      url_(context.urls.empty() ? "" : context.urls.front()),
      make_(std::move(make)),
      form_(form),
      store_(make_(options_.timeouts(), env_)) {}

AcquireResult ConditionalLease::acquire(const AcquireRequest& request) {
  AcquireResult result = retry_with_token(
      request, env_, waiting(request),
      [&](const AcquireRequest& once, Lease& lease) { return take(once, lease); },
      [&](const Lease& lease, const std::stop_token& stop) {
        return change_own(*store_, form_, lease.key, lease.token, std::nullopt, stop);
      });
  if (result.lease && renewing_) keep_renewed(*result.lease, request.ttl);
  return result;
}

StoreResult<bool> ConditionalLease::take(const AcquireRequest& request, Lease& lease) {
  return grant(request, lease.token, nullptr, lease);
}

StoreResult<bool> ConditionalLease::grant(const AcquireRequest& request, const std::string& value,
                                          const VersionedItem* over, Lease& lease) {
  const auto kept = store_->kept(request.ttl);
  if (!kept) return tl::unexpected(kept.error());
  const TimePoint asked_at = env_.now();
  auto granted = store_->put({.key = lease.key,
                              .value = value,
                              .ttl = form_.expires ? request.ttl : Duration::max(),
                              .over = over},
                             request.stop);
  if (granted && *granted) {
    lease.state = std::make_shared<LeaseState>(asked_at + trusted(*kept), asked_at);
  }
  return granted;
}

ReleaseResult ConditionalLease::release(const Lease& lease) {
  if (lease.renewal) lease.renewal->stop();
  return to_release_result(change_own(*store_, form_, lease.key, lease.token, std::nullopt, {}));
}

RenewResult ConditionalLease::renew(const Lease& lease, Duration ttl) {
  if (auto refused = refused_renewal(ttl)) return *std::move(refused);
  const auto kept = store_->kept(ttl);
  if (!kept) return {RenewOutcome::failed, kept.error().message};
  const TimePoint asked_at = env_.now();
  return to_renew_result(change_own(*store_, form_, lease.key, lease.token, ttl, {}), lease, env_,
                         asked_at, trusted(*kept));
}

void ConditionalLease::keep_renewed(Lease& lease, Duration ttl) {
  RenewalScheduler& scheduler = renewal_scheduler(services_);
  const Duration timeout = renewal_timeout(ttl / 3, options_.command_timeout);
  const std::string channel = fmt::format("{} {} {}", url_, form_.name, timeout.count());
  scheduler.provide_channel(channel, [&](Env& env) {
    return std::make_unique<ConditionalRenewals>(make_(timeout, env), form_);
  });
  const Duration drift = ttl - std::min(ttl, trusted(ttl));
  lease.renewal = scheduler.keep({.key = lease.key,
                                  .token = lease.token,
                                  .state = lease.state,
                                  .granted_at = lease.state->confirmed_at(),
                                  .ttl = ttl,
                                  .drift = drift,
                                  .timing = *renewing_,
                                  .cap = options_.renew_cap,
                                  .ends_with_validity = !form_.expires,
                                  .channels = {channel}});
}

}  // namespace lockbench
