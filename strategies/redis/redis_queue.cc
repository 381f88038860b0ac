#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

constexpr Duration kAfterFailure = std::chrono::milliseconds(10);
// Until the first answer. A longer one than needed only delays the others if this client dies.
constexpr Duration kFirstRoundTrip = std::chrono::milliseconds(100);
// A stall is no round trip.
constexpr Duration kLongestRoundTrip = std::chrono::seconds(1);

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
    const TimePoint asked_at = env().now();
    const auto answer = call(kPlace, lease,
                             {"ask", lease.token, std::to_string(ceil_milliseconds(window())),
                              std::to_string(ceil_milliseconds(request.ttl)), may_wait ? "1" : "0"},
                             request.stop);
    if (!answer) return tl::unexpected(answer.error());
    note_round_trip(env().now() - asked_at);
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
    return call(kFlag, lease, {"release", lease.token}, stop);
  }
  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override {
    return call(kFlag, lease, {"leave", lease.token}, stop);
  }
  void withdraw(const Lease& lease, const std::stop_token& stop) override {
    (void)undo(lease, stop);
  }

 private:
  template <class T>
  StoreResult<T> call(const Form<T>& form, const Lease& lease, WordList args,
                      const std::stop_token& stop) {
    const auto key = [&](std::string_view suffix) { return lease.key + std::string(suffix); };
    return redis().call(form, scripts::queue,
                        {lease.key, key(kQueue), key(kLiveness), key(kNumbers)}, args, stop);
  }

  /// How long a heartbeat is valid, and how long this client may take to confirm a grant. Survives
  /// one lost heartbeat followed by a late one, each as late as this client is far.
  Duration window() const { return 3 * (heartbeat_ + round_trip_); }

  /// The longest of the latest, as a window that is too short costs the client its place.
  void note_round_trip(Duration taken) {
    const Duration remembered = measured_ ? round_trip_ * 7 / 8 : Duration::zero();
    round_trip_ = std::min<Duration>(std::max(taken, remembered), kLongestRoundTrip);
    measured_ = true;
  }

  Duration heartbeat_ = std::chrono::milliseconds(500);
  Duration round_trip_ = kFirstRoundTrip;
  bool measured_ = false;
  std::int64_t waiters_before_ = 0;
};

const Registration redis_queue(on_redis({
    .name = "redis-queue",
    .summary =
        "First come, first served: a release grants the lock to the next live waiter and wakes it",
    .acquire_commands =
        {"EVALSHA queue key key:queue key:liveness key:numbers ask token window ttl 0|1",
         "BLPOP key:wake:token seconds",
         "EVALSHA queue key key:queue key:liveness key:numbers leave token"},
    .release_commands = {"EVALSHA queue key key:queue key:liveness key:numbers release token"},
    .renew_commands = {"EVALSHA renew_if_token key token ttl"},
    .source = "lockbench's own design",
    .typical = true,
    .libraries = {{"Java", "Redisson getFairLock (fair by a queue too, with other keys)",
                   "lockWatchdogTimeout = {ttl}", Reentry::counted, true}},
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
