#include <fmt/format.h>

#include <algorithm>

#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

constexpr Duration kAfterFailure = std::chrono::milliseconds(10);
constexpr std::string_view kQueue = ":queue", kLiveness = ":liveness", kNumbers = ":numbers";

/// Handed over in the order in which it was asked for. A release grants to the next waiter that is
/// alive and wakes it alone, through a list of its own that it blocks on, so that no wake-up can be
/// lost. Whoever waits gives signs of life; a grant must be taken up, by asking again, before it
/// runs out. Everybody who asks drops dead waiters and moves a grant on that was not taken up.
class Queue : public TokenLock {
 public:
  using TokenLock::TokenLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    sign_of_life_ = std::clamp<Duration>(request.ttl / 10, std::chrono::milliseconds(10),
                                         std::chrono::milliseconds(500));
    const auto milliseconds = ceil_milliseconds(request.ttl);
    const TimePoint asked_at = env().now();
    const bool may_wait = request.deadline > asked_at;
    const auto answer =
        call("ask", lease, request.stop, std::to_string(milliseconds), may_wait ? "1" : "0");
    if (!answer) return tl::unexpected(answer.error());
    const bool granted = answer->elements.at(0).is_integer(1);
    const std::int64_t number = answer->elements.at(1).integer;
    waiters_before_ = granted ? 0 : number;
    if (!granted) return false;
    lease.fencing = static_cast<std::uint64_t>(number);
    lease.state = valid_until(asked_at + std::chrono::milliseconds(milliseconds));
    return true;
  }

 protected:
  WaitResult wait_turn(const AcquireRequest& request, const Lease& lease, std::uint32_t,
                       Duration longest) override {
    const std::stop_token stop = env().waiting_stop(request.stop);
    if (stop.stop_requested()) return WaitResult::stopped;
    // The script scales what a sign of life is good for in the same way.
    const Duration next_sign = sign_of_life_ * std::min<std::int64_t>(1 + waiters_before_ / 32, 10);
    const Duration blocks_for =
        std::clamp<Duration>(longest, std::chrono::milliseconds(1), next_sign);
    const std::string list = fmt::format("{}:wake:{}", lease.key, lease.token);
    // Whatever came of it, the answer is got by asking; if it failed, not at once.
    if (!redis().call_blocking({"BLPOP", list, fmt::format("{:.3f}", seconds(blocks_for))},
                               blocks_for, stop)) {
      env().wait(nullptr, env().now() + std::min(blocks_for, kAfterFailure), stop);
    }
    return stop.stop_requested() ? WaitResult::stopped : WaitResult::timed_out;
  }

  ReleaseResult give_back(const Lease& lease) override {
    return to_release_result(call("release", lease, {}));
  }
  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override {
    return freed_by(to_release_result(call("leave", lease, stop)));
  }
  void withdraw(const Lease& lease, const std::stop_token& stop) override {
    (void)undo(lease, stop);
  }

 private:
  StoreResult<Reply> call(std::string_view verb, const Lease& lease, const std::stop_token& stop,
                          std::string_view ttl = "0", std::string_view may_wait = "0") {
    // One sign may be lost, and one may be late.
    const std::string alive_for = std::to_string(ceil_milliseconds(3 * sign_of_life_));
    const auto key = [&](std::string_view suffix) { return lease.key + std::string(suffix); };
    return redis().call(scripts::queue, {lease.key, key(kQueue), key(kLiveness), key(kNumbers)},
                        {verb, lease.token, alive_for, ttl, may_wait}, stop);
  }

  Duration sign_of_life_ = std::chrono::milliseconds(500);
  std::int64_t waiters_before_ = 0;
};

const Registration registration(Descriptor{
    .name = "redis-queue",
    .backend = "redis",
    .summary = "First come, first served: a release grants to the next live waiter and wakes it",
    .acquire_commands = {"EVALSHA queue key key:queue key:liveness key:numbers ask token",
                         "BLPOP key:wake:token seconds"},
    .release_commands = {"EVALSHA queue key key:queue key:liveness key:numbers release token"},
    .renew_commands = {"EVALSHA renew_if_token key token ttl"},
    .source = "a design of our own",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .fencing = true,
               .renews = RenewalTiming{},
               .renewable = true,
               .fair = true,
               .waiting = {.kind = WaitKind::queue},
               .waiting_choices = {}},
    .hazards =
        without_hazards(with_renewal_hazards({{"failover-fenced", HazardOutcome::lost_update},
                                              {"restart-fenced", HazardOutcome::unavailable}}),
                        {"pause-holding-fenced"}),
    .make = construct<Queue>,
    .key_suffixes = {"", kQueue, kLiveness, kNumbers},
});

}  // namespace
}  // namespace lockbench::redis
