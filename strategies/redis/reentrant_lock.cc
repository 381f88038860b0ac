#include "strategies/redis/reentrant_lock.h"

#include <fmt/format.h>

#include "strategies/redis/client/answers.h"
#include "strategies/redis/scripts.h"

namespace lockbench::redis {
namespace {

/// Bounds the keys with lost answers that a client remembers; others end with their TTL.
constexpr std::size_t kMaxDoubts = 1024;

/// Identifies this process among all others.
struct ProcessId {
  std::string text;
};

}  // namespace

StoreResult<Reply> ReentrantLock::run(const Script& script, std::string_view key,
                                      std::initializer_list<std::string_view> args,
                                      const std::stop_token& stop) {
  return redis().call(script, {key}, args, stop);
}

StoreResult<TryResult> ReentrantLock::try_acquire(const AcquireRequest& request, Lease& lease) {
  const auto milliseconds = ceil_milliseconds(request.ttl);
  latest_ttl_ = request.ttl;
  (void)settle_doubts(lease, request.stop);  // after a failure, the release tries again
  const TimePoint asked_at = env().now();
  const auto left = redis().read(kNilOrTimeLeft, scripts::reentrant_acquire.name,
                                 run(scripts::reentrant_acquire, lease.key,
                                     {lease.token, std::to_string(milliseconds)}, request.stop));
  if (!left) return tl::unexpected(left.error());
  if (left->has_value()) return TryResult(false, **left);
  Held& held = held_[lease.key];
  ++held.count;
  held.ttl = request.ttl;
  lease.state = valid_until(asked_at + std::chrono::milliseconds(milliseconds));
  return true;
}

StoreResult<ReentrantLock::Released> ReentrantLock::release_once(const Lease& lease, Duration ttl,
                                                                 const std::stop_token& stop) {
  static constexpr Form<Released> kForm{
      "0, 1 or nil", [](const Reply& reply) -> std::optional<Released> {
        if (reply.is_nil()) return Released::not_held;
        const auto freed = number_in(reply, 0, 1);
        if (!freed) return std::nullopt;
        return *freed == 1 ? Released::freed : Released::counted_down;
      }};
  const std::string milliseconds = std::to_string(ceil_milliseconds(ttl));
  const Script& script = scripts::reentrant_release;
  return redis().read(
      kForm, script.name,
      notifies() ? run(script, lease.key, {lease.token, milliseconds, channel_of(lease.key)}, stop)
                 : run(script, lease.key, {lease.token, milliseconds}, stop));
}

StoreResult<bool> ReentrantLock::give_back(const Lease& lease, const std::stop_token& stop) {
  const auto held = held_.find(lease.key);
  const Duration ttl = held == held_.end() ? latest_ttl_ : held->second.ttl;
  if (held != held_.end() && --held->second.count == 0) held_.erase(held);
  const auto released = release_once(lease, ttl, stop);
  if (!released) {
    doubt(lease);
    return tl::unexpected(released.error());
  }
  if (*released == Released::counted_down) {
    // This client no longer holds it, so the server must not count it either.
    if (auto settled = settle_doubts(lease, stop); !settled) {
      return tl::unexpected(std::move(settled.error()));
    }
  }
  return *released != Released::not_held;
}

StoreResult<bool> ReentrantLock::undo(const Lease& lease, const std::stop_token& stop) {
  // If it was held already, whether it was counted again is unknown.
  const bool held = held_.contains(lease.key);
  const auto freed =
      held ? StoreResult<Released>(Released::counted_down) : release_once(lease, latest_ttl_, stop);
  if (held || !freed) doubt(lease);
  if (!freed) return tl::unexpected(freed.error());
  return *freed == Released::freed;
}

void ReentrantLock::doubt(const Lease& lease) {
  if (doubts_.size() < kMaxDoubts || doubts_.contains(lease.key)) ++doubts_[lease.key];
}

StoreResult<void> ReentrantLock::settle_doubts(const Lease& lease, const std::stop_token& stop) {
  const auto doubts = doubts_.find(lease.key);
  if (doubts == doubts_.end() || held_.contains(lease.key)) return {};
  // One by one, as another client may have the same owner name (redis-reentrant).
  for (bool counted = true; counted && doubts->second > 0; --doubts->second) {
    const auto left = release_once(lease, latest_ttl_, stop);
    if (!left) return tl::unexpected(left.error());
    counted = *left == Released::counted_down;
  }
  doubts_.erase(doubts);
  return {};
}

std::optional<RenewalProtocol> ReentrantLock::renewal_protocol() const {
  return RenewalProtocol{.script = &scripts::reentrant_renew};
}

RedissonLock::RedissonLock(const Context& context)
    : ReentrantLock(context),
      owner_(fmt::format("{}:{}",
                         context.services
                             .get_or_make<ProcessId>([&] {
                               return std::make_shared<ProcessId>(
                                   ProcessId{random_token(context.env)});
                             })
                             .text,
                         context.client)) {}

}  // namespace lockbench::redis
