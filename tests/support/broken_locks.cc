#include "tests/support/broken_locks.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "strategies/redis/scripts.h"
#include "tests/support/flawed_lock.h"

namespace lockbench::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Acquisitions.

AcquireResult let_two_in(Flawed& lock, const AcquireRequest& request) {
  AcquireResult result = lock.try_once(request);
  if (result.outcome != AcquireOutcome::refused) return result;
  AcquireResult intruder = granted(request, "intruder", TimePoint::max());
  intruder.attempts = result.attempts;
  return intruder;
}

AcquireResult confuse_keys(Flawed& lock, const AcquireRequest& request) {
  AcquireRequest same = request;
  same.key = "the only one";
  return lock.sound().acquire(same);
}

AcquireResult repeat_a_fencing_number(Flawed& lock, const AcquireRequest& request) {
  AcquireResult result = lock.sound().acquire(request);
  if (result.lease) result.lease->fencing = 7;
  return result;
}

AcquireResult ignore_the_deadline(Flawed& lock, const AcquireRequest& request) {
  AcquireRequest later = request;
  if (request.deadline > lock.env().now()) later.deadline += seconds(10);
  return lock.sound().acquire(later);
}

AcquireResult give_up_early(Flawed& lock, const AcquireRequest& request) {
  AcquireResult result = lock.try_once(request);
  if (result.outcome == AcquireOutcome::refused) result.outcome = AcquireOutcome::timed_out;
  return result;
}

AcquireResult try_twice(Flawed& lock, const AcquireRequest& request) {
  AcquireResult result = lock.sound().acquire(request);
  if (result.outcome != AcquireOutcome::refused) return result;
  result = lock.sound().acquire(request);
  ++result.attempts;
  return result;
}

/// Waits, then gives up instead of asking again.
AcquireResult never_retry(Flawed& lock, const AcquireRequest& request) {
  AcquireResult result = lock.try_once(request);
  if (result.outcome != AcquireOutcome::refused) return result;
  lock.env().wait(nullptr, lock.env().now() + milliseconds(100), request.stop);
  result.outcome = AcquireOutcome::timed_out;
  return result;
}

AcquireResult ignore_a_stop(Flawed& lock, const AcquireRequest& request) {
  AcquireRequest unstoppable = request;
  unstoppable.stop = {};
  return lock.sound().acquire(unstoppable);
}

AcquireResult heed_a_stop_late(Flawed& lock, const AcquireRequest& request) {
  AcquireResult result = lock.sound().acquire(request);
  if (request.stop.stop_requested()) lock.env().wait(nullptr, lock.env().now() + seconds(10), {});
  return result;
}

AcquireResult lose_track_when_stopped(Flawed& lock, const AcquireRequest& request) {
  AcquireResult result = lock.sound().acquire(request);
  if (request.stop.stop_requested()) result.outcome = AcquireOutcome::unknown;
  return result;
}

AcquireResult leave_an_unnamed_key(Flawed& lock, const AcquireRequest& request) {
  const std::string key = std::string(request.key) + ":visited";
  (void)lock.redis().call({"SET", key, "1"});
  return lock.sound().acquire(request);
}

AcquireResult count_validity_from_the_answer(Flawed& lock, const AcquireRequest& request) {
  AcquireResult result = lock.sound().acquire(request);
  if (result.lease) result.lease->state->extend(lock.env().now() + request.ttl, lock.env().now());
  return result;
}

AcquireResult hand_out_an_old_lease(Flawed& lock, const AcquireRequest& request) {
  const TimePoint asked_at = lock.env().now();
  (void)lock.redis().call({"GET", request.key});
  return granted(request, "old", asked_at + request.ttl);
}

/// Counts sharers, but lets them in while a client waits for exclusive mode.
AcquireResult let_sharers_overtake(Flawed& lock, const AcquireRequest& request) {
  AcquireResult result{.outcome = AcquireOutcome::refused, .attempts = 1};
  const std::string sharers = std::string(request.key) + ":sharers";
  if (request.mode == Mode::shared) {
    const auto taken = lock.redis().call({"EXISTS", request.key});
    if (!taken || taken->is_integer(1)) return result;
    (void)lock.redis().call({"INCR", sharers});
    return granted(request, "sharer", TimePoint::max());
  }
  while (true) {
    const auto left = lock.redis().call({"INCRBY", sharers, "0"});
    if (left && left->is_integer(0)) return lock.sound().acquire(request);
    if (lock.env().now() >= request.deadline) return result;
    lock.env().wait(nullptr, lock.env().now() + milliseconds(5), request.stop);
  }
}

ReleaseResult release_a_sharer(Flawed& lock, const Lease& lease) {
  if (lease.mode == Mode::exclusive) return lock.sound().release(lease);
  (void)lock.redis().call({"DECR", lease.key + ":sharers"});
  return {ReleaseOutcome::released, {}};
}

/// Lets sharers in without looking at the holders.
AcquireResult let_sharers_in(Flawed& lock, const AcquireRequest& request) {
  if (request.mode == Mode::exclusive) return lock.sound().acquire(request);
  return granted(request, "sharer", TimePoint::max());
}

AcquireResult send_undeclared(Flawed& lock, const AcquireRequest& request) {
  (void)lock.redis().call({"EXISTS", request.key});
  return lock.sound().acquire(request);
}

AcquireResult need_an_administrator(Flawed& lock, const AcquireRequest& request) {
  if (const auto looked = lock.redis().call({"CONFIG", "GET", "save"}); !looked) {
    return {.outcome = AcquireOutcome::failed, .reason = looked.error().message};
  }
  return lock.sound().acquire(request);
}

/// Reports one outcome of an acquisition as another.
template <AcquireOutcome real, AcquireOutcome told>
AcquireResult miscall(Flawed& lock, const AcquireRequest& request) {
  AcquireResult result = lock.sound().acquire(request);
  if (result.outcome == real) result.outcome = told;
  return result;
}

// Releases and renewals.

ReleaseResult release_unchecked(Flawed& lock, const Lease& lease) {
  return to_release_result(lock.redis().call(redis::kFlag, {"DEL", lease.key}));
}

ReleaseResult forget_to_release(Flawed& /*lock*/, const Lease& /*lease*/) {
  return {ReleaseOutcome::released, {}};
}

ReleaseResult call_a_lost_release_success(Flawed& lock, const Lease& lease) {
  lock.sound().release(lease);
  return {ReleaseOutcome::released, {}};
}

ReleaseResult not_fall_back(Flawed& lock, const Lease& lease) {
  return to_release_result(lock.redis().call(
      redis::kFlag,
      {"EVALSHA", redis::scripts::release_if_token.sha1, "1", lease.key, lease.token}));
}

ReleaseResult forget_to_tell(Flawed& lock, const Lease& lease) {
  return to_release_result(lock.redis().call(redis::kFlag, redis::scripts::release_if_token,
                                             {lease.key}, {lease.token}));
}

ReleaseResult tell_in_vain(Flawed& lock, const Lease& lease) {
  ReleaseResult result = lock.sound().release(lease);
  if (result.outcome == ReleaseOutcome::not_owner) {
    (void)lock.redis().call({"PUBLISH", lease.key + ":released", "released"});
  }
  return result;
}

RenewResult renew_unchecked(Flawed& lock, const Lease& lease, Duration ttl) {
  const TimePoint asked_at = lock.env().now();
  const auto renewed = lock.redis().call(
      redis::kFlag, {"PEXPIRE", lease.key, std::to_string(ceil_milliseconds(ttl))});
  return to_renew_result(renewed, lease, lock.env(), asked_at, ttl);
}

RenewResult renew_nothing(Flawed& /*lock*/, const Lease& /*lease*/, Duration /*ttl*/) {
  return {RenewOutcome::renewed, {}};
}

// Connections.

/// Keeps deliberately leaked objects reachable, for the leak checker.
StoreResult<void> leak_a_connection(Flawed& lock) {
  static const std::unique_ptr<Env> env = make_system_env(0);
  static std::vector<std::unique_ptr<redis::Connection>> leaked;
  leaked.push_back(connection_to(lock.context(), *env));
  (void)leaked.back()->connect();
  return lock.sound().connect();
}

StoreResult<void> tell_the_password(Flawed& lock) {
  auto connected = lock.sound().connect();
  if (!connected) {
    connected.error().message +=
        ", which is " + lock.context().endpoints.find("redis")->second.front();
  }
  return connected;
}

// Flaws with state from call to call; each lock has its own.

struct ReenterUndeclared {
  AcquireResult last{};
  AcquireResult operator()(Flawed& lock, const AcquireRequest& request) {
    if (last.lease && last.lease->key == request.key) return last;
    return last = lock.sound().acquire(request);
  }
};

struct NeverReconnect {
  AcquireResult last{};
  AcquireResult operator()(Flawed& lock, const AcquireRequest& request) {
    if (last.outcome == AcquireOutcome::failed && last.attempts > 0) return last;
    return last = lock.sound().acquire(request);
  }
};

struct SendUnreported {
  std::shared_ptr<Env> unwatched{};
  std::shared_ptr<redis::Connection> secret{};
  AcquireResult operator()(Flawed& lock, const AcquireRequest& request) {
    if (!secret) {
      unwatched = make_system_env(0);
      secret = connection_to(lock.context(), *unwatched);
    }
    (void)secret->call({"EXISTS", request.key});
    return lock.sound().acquire(request);
  }
};

struct KeepRenewing {
  std::shared_ptr<Renewal> kept{};
  AcquireResult operator()(Flawed& lock, const AcquireRequest& request) {
    AcquireResult result = lock.sound().acquire(request);
    if (result.lease) kept = std::exchange(result.lease->renewal, nullptr);
    return result;
  }
};

/// A client that leaves without the lock does not pass on its wake-up.
struct HoardsWakeups : Flawed {
  explicit HoardsWakeups(const Context& context)
      : Flawed(context, {}), woken_(context.env.make_event()) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = try_once(request);
    if (result.outcome != AcquireOutcome::refused) return result;
    redis::NotificationHub::Waiter waiter(hub(), std::string(request.key) + ":released", *woken_);
    bool asked_listening = false;
    while (env().now() < request.deadline) {
      if (asked_listening) env().wait(woken_.get(), request.deadline, request.stop);
      asked_listening = true;
      result = try_once(request);
      if (result.outcome != AcquireOutcome::refused) break;
    }
    waiter.satisfied();
    if (result.outcome == AcquireOutcome::refused) result.outcome = AcquireOutcome::timed_out;
    return result;
  }

 private:
  redis::NotificationHub& hub() {
    using redis::ConnectionFactory, redis::NotificationHub;
    return context().services.get_or_make<NotificationHub>([&] {
      auto& factory =
          context().services.get_or_make<ConnectionFactory>(redis::make_connection_factory);
      return std::make_shared<NotificationHub>(
          redis::parse_endpoint(context().endpoints.find("redis")->second.front()).value(),
          context().options.command_timeout, factory, make_service_env(context().services));
    });
  }

  std::unique_ptr<Event> woken_;
};

/// SETNX without the EXPIRE: reports `failed` although the lock exists.
struct CallsHalfALockFailure : redis::TokenLock {
  using TokenLock::TokenLock;
  StoreResult<redis::TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const auto taken = redis().call({"SETNX", lease.key, lease.token}, request.stop);
    if (!taken) return tl::unexpected(taken.error());
    if (!taken->is_integer(1)) return false;
    const auto expires = redis().call({"EXPIRE", lease.key, "10"}, request.stop);
    if (!expires) return tl::unexpected(expires.error());
    return true;
  }
  Duration validity(Duration /*ttl*/) const override { return {}; }
};

using Make = decltype(Descriptor::make);

Make behaving(Behaviour behaviour) {
  return [behaviour = std::move(behaviour)](const Context& context) {
    return std::make_unique<Flawed>(context, behaviour);
  };
}
template <class Acquire>
Make acquiring(Acquire acquire) {
  return behaving({.acquire = std::move(acquire)});
}
Make releasing(ReleaseResult (*release)(Flawed&, const Lease&)) {
  return behaving({.release = release});
}

void declare_renewal(Descriptor& lock) {
  lock.traits.renews = RenewalTiming{};
  lock.renew_commands = {"EXPIRE key seconds"};
}
void declare_sharing(Descriptor& lock) { lock.traits.shared = true; }

struct BrokenLock {
  std::string_view flaw;
  Make make;                                    ///< empty: like the sound one
  void (*declare)(Descriptor& lock) = nullptr;  ///< null: the sound one's declaration
};

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<BrokenLock> all_broken() {
  using enum AcquireOutcome;
  return {
      {"lets_two_in", acquiring(let_two_in)},
      {"lets_all_have_a_permit", acquiring(let_two_in),
       [](Descriptor& lock) { lock.traits.permits = true; }},
      {"has_one_permit", {}, [](Descriptor& lock) { lock.traits.permits = true; }},
      {"confuses_keys", acquiring(confuse_keys)},
      {"reenters_undeclared", acquiring(ReenterUndeclared{})},
      {"repeats_fencing_numbers", acquiring(repeat_a_fencing_number),
       [](Descriptor& lock) { lock.traits.fencing = true; }},
      {"ignores_the_deadline", acquiring(ignore_the_deadline)},
      {"gives_up_early", acquiring(give_up_early)},
      {"tries_twice", acquiring(try_twice)},
      {"never_retries", acquiring(never_retry)},
      {"ignores_a_stop", acquiring(ignore_a_stop)},
      {"heeds_a_stop_late", acquiring(heed_a_stop_late)},
      {"loses_track_when_stopped", acquiring(lose_track_when_stopped)},
      {"releases_unchecked", releasing(release_unchecked)},
      {"forgets_its_own_expiry", releasing(release_unchecked),
       [](Descriptor& lock) { lock.traits.release_check = OwnerCheck::local_clock; }},
      {"renews_unchecked", behaving({.renew = renew_unchecked})},
      {"renews_nothing", behaving({.renew = renew_nothing})},
      {"leaves_an_unnamed_key", acquiring(leave_an_unnamed_key)},
      {"forgets_to_release", releasing(forget_to_release)},
      {"leaks_a_connection", behaving({.connect = leak_a_connection})},
      {"counts_validity_from_the_answer", acquiring(count_validity_from_the_answer)},
      {"hands_out_old_leases", acquiring(hand_out_an_old_lease)},
      {"sends_undeclared", acquiring(send_undeclared)},
      {"sends_unreported", acquiring(SendUnreported{})},
      {"does_not_fall_back", releasing(not_fall_back)},
      {"mislabels_the_key", behaving({.keyless = true})},
      {"calls_a_lost_answer_failure", acquiring(miscall<unknown, failed>)},
      {"calls_a_cut_refusal", acquiring(miscall<failed, refused>)},
      {"calls_a_lost_release_success", releasing(call_a_lost_release_success)},
      {"never_looks_for_the_server",
       behaving({.connect = [](Flawed&) { return StoreResult<void>(); }})},
      {"never_reconnects", acquiring(NeverReconnect{})},
      {"waits_too_long_for_answers",
       behaving(
           {.mislead = [](Context&, StrategyOptions& o) { o.command_timeout += seconds(10); }})},
      {"needs_an_administrator", acquiring(need_an_administrator)},
      {"assumes_the_first_database", behaving({.mislead =
                                                   [](Context& context, StrategyOptions&) {
                                                     std::string& url = context.urls.front();
                                                     url = url.substr(0, url.find("?db="));
                                                   }})},
      {"forgets_to_renew",
       behaving({.mislead = [](Context& context, StrategyOptions&) { context.renewing.reset(); }}),
       declare_renewal},
      {"keeps_renewing", acquiring(KeepRenewing{})},
      {"forgets_to_tell", releasing(forget_to_tell)},
      {"tells_in_vain", releasing(tell_in_vain)},
      {"hoards_wakeups", construct<HoardsWakeups>},
      {"lets_sharers_in", acquiring(let_sharers_in), declare_sharing},
      {"lets_sharers_overtake",
       behaving({.acquire = let_sharers_overtake, .release = release_a_sharer}),
       [](Descriptor& lock) {
         declare_sharing(lock);
         lock.traits.fair = true;
       }},
      {"tells_the_password", behaving({.connect = tell_the_password})},
      {"never_expires", construct<NeverExpires>},
      {"does_not_tidy_up", construct<DoesNotTidyUp>},
      {"calls_half_a_lock_failure", construct<CallsHalfALockFailure>,
       [](Descriptor& lock) { lock.acquire_commands.emplace_back("EXPIRE key seconds"); }},
      {"timer_renews_unchecked", construct<RenewsUnchecked>},
      {"excludes_as_a_control",
       {},
       [](Descriptor& lock) { lock.traits.promises_exclusion = false; }},
      {"expires_undeclared", {}, [](Descriptor& lock) { lock.traits.expiry = Expiry::none; }},
      {"declares_too_much",
       {},
       [](Descriptor& lock) { lock.acquire_commands.emplace_back("WAIT 1 100"); }},
      {"declares_another_renewal", {}, declare_renewal},
      {"shares_with_nobody", {}, declare_sharing},
      {"lets_newcomers_barge",
       {},
       [](Descriptor& lock) {
         lock.traits.fair = true;
         lock.traits.waiting = WaitPolicy::backoff(milliseconds(5), milliseconds(100));
       }},
  };
}

std::map<std::string_view, Descriptor> all_broken_locks() {
  std::map<std::string_view, Descriptor> locks;
  for (const BrokenLock& broken : all_broken()) {
    Descriptor& lock = locks[broken.flaw] = sound_lock();
    lock.name = "broken";
    if (broken.make) lock.make = broken.make;
    if (broken.declare != nullptr) broken.declare(lock);
  }
  return locks;
}

const std::map<std::string_view, Descriptor>& locks_by_flaw() {
  static const std::map<std::string_view, Descriptor> locks = all_broken_locks();
  return locks;
}

}  // namespace

const Descriptor& broken_lock(std::string_view flaw) { return locks_by_flaw().at(flaw); }

std::vector<std::string_view> all_flaws() {
  std::vector<std::string_view> flaws;
  for (const auto& [flaw, lock] : locks_by_flaw()) flaws.push_back(flaw);
  return flaws;
}

}  // namespace lockbench::test
