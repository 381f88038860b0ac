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

AcquireResult TimedLease::acquire(const AcquireRequest& request) {
  AcquireResult result = retry_with_token(
      request, env(), waiting(request),
      [&](const AcquireRequest& once, Lease& lease) { return take(once, lease); },
      [&](const Lease& lease, const std::stop_token& stop) { return take_back(lease, stop); });
  if (result.lease && context_.renewing) keep_renewed(*result.lease, request.ttl);
  return result;
}

ReleaseResult TimedLease::release(const Lease& lease) {
  if (lease.renewal) lease.renewal->stop();
  return to_release_result(give_back(lease));
}

RenewResult TimedLease::renew(const Lease& lease, Duration ttl) {
  if (auto refused = refused_renewal(ttl)) return *std::move(refused);
  const auto valid = valid_for(ttl);
  if (!valid) return {RenewOutcome::failed, valid.error().message};
  const TimePoint asked_at = env().now();
  return to_renew_result(extend(lease, ttl), lease, env(), asked_at, *valid);
}

void TimedLease::keep_renewed(Lease& lease, Duration ttl) {
  RenewalScheduler& scheduler = renewal_scheduler(context_.services);
  const Duration timeout = renewal_timeout(ttl / 3, options().command_timeout);
  const std::string channel =
      fmt::format("{} lease {} {}", context_.urls.empty() ? "" : context_.urls.front(),
                  renewal_kind(), timeout.count());
  scheduler.provide_channel(channel, [&](Env& env) { return make_renewals(timeout, env); });
  RenewalOrder order = order_for(ttl);
  order.key = lease.key;
  order.token = lease.token;
  order.state = lease.state;
  order.granted_at = lease.state->confirmed_at();
  order.ttl = ttl;
  order.timing = *context_.renewing;
  order.cap = options().renew_cap;
  order.channels = {channel};
  lease.renewal = scheduler.keep(std::move(order));
}

ConditionalLease::ConditionalLease(const Context& context, MakeStore make, const LeaseForm& form)
    : TimedLease(context),
      make_(std::move(make)),
      form_(form),
      store_(make_(options().timeouts(), env())) {}

StoreResult<bool> ConditionalLease::take(const AcquireRequest& request, Lease& lease) {
  return grant(request, lease.token, nullptr, lease);
}

StoreResult<bool> ConditionalLease::take_back(const Lease& lease, const std::stop_token& stop) {
  return change_own(*store_, form_, lease.key, lease.token, std::nullopt, stop);
}

StoreResult<bool> ConditionalLease::extend(const Lease& lease, Duration ttl) {
  return change_own(*store_, form_, lease.key, lease.token, ttl, {});
}

StoreResult<Duration> ConditionalLease::valid_for(Duration ttl) const {
  return store_->kept(ttl).map([this](Duration kept) { return trusted(kept); });
}

RenewalOrder ConditionalLease::order_for(Duration ttl) const {
  return {.drift = ttl - std::min(ttl, trusted(ttl)), .ends_with_validity = !form_.expires};
}

std::unique_ptr<RenewalChannel> ConditionalLease::make_renewals(Duration timeout, Env& env) const {
  return std::make_unique<ConditionalRenewals>(make_(timeout, env), form_);
}

StoreResult<bool> ConditionalLease::grant(const AcquireRequest& request, const std::string& value,
                                          const VersionedItem* over, Lease& lease) {
  const auto valid = valid_for(request.ttl);
  if (!valid) return tl::unexpected(valid.error());
  const TimePoint asked_at = env().now();
  auto granted = store_->put({.key = lease.key,
                              .value = value,
                              .ttl = form_.expires ? request.ttl : Duration::max(),
                              .over = over},
                             request.stop);
  if (granted && *granted) {
    lease.state = std::make_shared<LeaseState>(asked_at + *valid, asked_at);
  }
  return granted;
}

}  // namespace lockbench
