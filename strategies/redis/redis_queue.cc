#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

constexpr Duration kAfterFailure = std::chrono::milliseconds(10);

/// The answer to "ask".
struct Place {
  bool granted = false;
  std::int64_t number = 0;  ///< the fencing number, or the number of waiters before this client
};

constexpr Form<Place> kPlace{
    "{1, number} or {0, waiters}", [](const Reply& reply) -> std::optional<Place> {
      if (reply.type != Reply::Type::array || reply.elements.size() != 2) return std::nullopt;
      const auto granted = number_in(reply.elements[0], 0, 1);
      const auto number =
          number_in(reply.elements[1], 0, std::numeric_limits<std::int64_t>::max() - 1);
      if (!granted || !number || *number < *granted) return std::nullopt;
      return Place{*granted == 1, *number};
    }};

/// BLPOP.
constexpr Form<bool> kWoken{"nil or a list and its element",
                            [](const Reply& reply) -> std::optional<bool> {
                              const bool popped = reply.type == Reply::Type::array;
                              if (!popped && !reply.is_nil()) return std::nullopt;
                              return popped;
                            }};

constexpr std::string_view kQueue = ":queue", kLiveness = ":liveness", kNumbers = ":numbers";

/// First come, first served. A release grants the lock to the next live waiter and wakes only this
/// client, which blocks on a list of its own, so that no wake-up is lost. Waiting clients send
/// heartbeats. A client confirms its grant by asking again before the grant expires. Each request
/// removes dead waiters and passes on a grant that was not confirmed.
class ListQueue : public TokenLock {
 public:
  using TokenLock::TokenLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    heartbeat_ = std::clamp<Duration>(request.ttl / 10, std::chrono::milliseconds(10),
                                      std::chrono::milliseconds(500));
    const bool may_wait = request.deadline > env().now();
    const auto answer = call(kPlace, "ask", lease, request.stop,
                             std::to_string(ceil_milliseconds(request.ttl)), may_wait ? "1" : "0");
    if (!answer) return tl::unexpected(answer.error());
    waiters_before_ = answer->granted ? 0 : answer->number;
    if (!answer->granted) return false;
    lease.fencing = static_cast<std::uint64_t>(answer->number);
    return true;
  }

 protected:
  WaitResult wait_turn(const AcquireRequest& request, const Lease& lease, std::uint32_t,
                       Duration longest) override {
    const std::stop_token stop = env().waiting_stop(request.stop);
    if (stop.stop_requested()) return WaitResult::stopped;
    // The script scales the validity of heartbeats by the same factor.
    const Duration next_heartbeat =
        heartbeat_ * std::min<std::int64_t>(1 + waiters_before_ / 32, 10);
    const Duration blocks_for =
        std::clamp<Duration>(longest, std::chrono::milliseconds(1), next_heartbeat);
    const std::string list = fmt::format("{}:wake:{}", lease.key, lease.token);
    const std::string timeout = fmt::format("{:.3f}", seconds(blocks_for));
    const std::string_view words[] = {"BLPOP", list, timeout};
    redis().queue(Command(words), {}, blocks_for);
    // The next request shows the result; after a failure it is delayed.
    if (!redis().read(kWoken, words[0], redis().receive(stop))) {
      env().wait(nullptr, env().now() + std::min(blocks_for, kAfterFailure), stop);
    }
    return stop.stop_requested() ? WaitResult::stopped : WaitResult::timed_out;
  }

  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    return call(kFlag, "release", lease, stop);
  }
  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override {
    return call(kFlag, "leave", lease, stop);
  }
  void withdraw(const Lease& lease, const std::stop_token& stop) override {
    (void)undo(lease, stop);
  }
  std::optional<RenewalProtocol> renewal_protocol() const override {
    return RenewalProtocol{.script = &scripts::renew_numbered};
  }

 private:
  template <class T>
  StoreResult<T> call(const Form<T>& form, std::string_view verb, const Lease& lease,
                      const std::stop_token& stop, std::string_view ttl = "0",
                      std::string_view may_wait = "0") {
    // Survives one lost heartbeat followed by a late one.
    const std::string alive_for = std::to_string(ceil_milliseconds(3 * heartbeat_));
    const auto key = [&](std::string_view suffix) { return lease.key + std::string(suffix); };
    return redis().call(form, scripts::queue,
                        {lease.key, key(kQueue), key(kLiveness), key(kNumbers)},
                        {verb, lease.token, alive_for, ttl, may_wait}, stop);
  }

  Duration heartbeat_ = std::chrono::milliseconds(500);
  std::int64_t waiters_before_ = 0;
};

const Registration redis_queue(on_redis({
    .name = "redis-queue",
    .summary =
        "First come, first served: a release grants the lock to the next live waiter and wakes it",
    .acquire_commands = {"EVALSHA queue key key:queue key:liveness key:numbers ask token",
                         "BLPOP key:wake:token seconds"},
    .release_commands = {"EVALSHA queue key key:queue key:liveness key:numbers release token"},
    .renew_commands = {"EVALSHA renew_numbered key token ttl"},
    .source = "lockbench's own design",
    .typical = true,
    .libraries = {{"Java", "Redisson getFairLock (fair by a queue too, with other keys)",
                   "lockWatchdogTimeout = {ttl}"}},
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .fencing = true,
               .renews = RenewalTiming{},
               .renewable = true,
               .fair = true,
               .waiting = {.kind = WaitKind::queue},
               .waiting_choices = {}},
    .make = construct<ListQueue>,
    .key_suffixes = {"", kQueue, kLiveness, kNumbers},
}));

}  // namespace
}  // namespace lockbench::redis
