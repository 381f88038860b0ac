#include "tests/support/broken_locks.h"

#include <stdexcept>
#include <utility>

#include "strategies/registry.h"
#include "tests/support/flawed_lock.h"

namespace lockbench::test {
namespace {

using std::chrono::milliseconds;

struct LetsTwoIn : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = try_once(request);
    if (result.outcome != AcquireOutcome::refused) return result;
    result.outcome = AcquireOutcome::acquired;
    result.lease = Lease{.key = std::string(request.key),
                         .token = "intruder",
                         .state = redis::valid_until(TimePoint::max())};
    return result;
  }
};

struct ConfusesKeys : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireRequest same = request;
    same.key = "the only one";
    return sound().acquire(same);
  }
};

struct ReentersUndeclared : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    if (last_.lease && last_.lease->key == request.key) return last_;
    return last_ = sound().acquire(request);
  }
  AcquireResult last_;
};

struct RepeatsFencingNumbers : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = sound().acquire(request);
    if (result.lease) result.lease->fencing = 7;
    return result;
  }
};

struct IgnoresTheDeadline : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    if (request.deadline <= env().now()) return sound().acquire(request);
    AcquireRequest later = request;
    later.deadline += std::chrono::seconds(10);
    return sound().acquire(later);
  }
};

struct GivesUpEarly : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = try_once(request);
    if (result.outcome == AcquireOutcome::refused) result.outcome = AcquireOutcome::timed_out;
    return result;
  }
};

struct TriesTwice : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = sound().acquire(request);
    if (result.outcome != AcquireOutcome::refused) return result;
    result = sound().acquire(request);
    ++result.attempts;
    return result;
  }
};

/// Waits, then gives up instead of asking again.
struct NeverRetries : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = try_once(request);
    if (result.outcome != AcquireOutcome::refused) return result;
    env().wait(nullptr, env().now() + milliseconds(100), request.stop);
    result.outcome = AcquireOutcome::timed_out;
    return result;
  }
};

struct IgnoresAStop : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireRequest unstoppable = request;
    unstoppable.stop = {};
    return sound().acquire(unstoppable);
  }
};

/// Notices a stop late.
struct HeedsAStopLate : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = sound().acquire(request);
    if (request.stop.stop_requested())
      env().wait(nullptr, env().now() + std::chrono::seconds(10), {});
    return result;
  }
};

struct LosesTrackWhenStopped : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = sound().acquire(request);
    if (request.stop.stop_requested()) result.outcome = AcquireOutcome::unknown;
    return result;
  }
};

struct ReleasesUnchecked : Flawed {
  using Flawed::Flawed;
  ReleaseResult release(const Lease& lease) override {
    return to_release_result(redis::release_unchecked(redis(), lease));
  }
};

struct RenewsUnchecked : Flawed {
  using Flawed::Flawed;
  RenewResult renew(const Lease& lease, Duration ttl) override {
    return redis::renew_unchecked(redis(), env(), lease, ttl);
  }
};

struct RenewsNothing : Flawed {
  using Flawed::Flawed;
  RenewResult renew(const Lease&, Duration) override { return {RenewOutcome::renewed, {}}; }
};

struct LeavesAnUnnamedKey : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    const std::string key = std::string(request.key) + ":visited";
    (void)redis().call({"SET", key, "1"});
    return sound().acquire(request);
  }
};

struct ForgetsToRelease : Flawed {
  using Flawed::Flawed;
  ReleaseResult release(const Lease&) override { return {ReleaseOutcome::released, {}}; }
};

struct NeverExpires : redis::TokenLock {
  using TokenLock::TokenLock;
  StoreResult<redis::TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const TimePoint asked_at = env().now();
    const auto reply = redis().call({"SET", lease.key, lease.token, "NX"}, request.stop);
    if (!reply) return tl::unexpected(reply.error());
    lease.state = redis::valid_until(asked_at + request.ttl);
    return reply->is_text("OK");
  }
};

struct CountsValidityFromTheAnswer : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = sound().acquire(request);
    if (result.lease) result.lease->state->extend(env().now() + request.ttl, env().now());
    return result;
  }
};

struct HandsOutOldLeases : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    const TimePoint asked_at = env().now();
    (void)redis().call({"GET", request.key});
    return {.outcome = AcquireOutcome::acquired,
            .lease = Lease{.key = std::string(request.key),
                           .token = "old",
                           .state = redis::valid_until(asked_at + request.ttl)}};
  }
};

/// Counts sharers, but lets them in wherever nobody is alone, whoever waits for that.
struct LetsSharersOvertake : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result{.outcome = AcquireOutcome::refused, .attempts = 1};
    const std::string sharers = std::string(request.key) + ":sharers";
    if (request.mode == Mode::shared) {
      const auto taken = redis().call({"EXISTS", request.key});
      if (!taken || taken->is_integer(1)) return result;
      (void)redis().call({"INCR", sharers});
      return {.outcome = AcquireOutcome::acquired,
              .lease = Lease{.key = std::string(request.key),
                             .token = "sharer",
                             .mode = Mode::shared,
                             .state = redis::valid_until(TimePoint::max())}};
    }
    while (true) {
      const auto left = redis().call({"INCRBY", sharers, "0"});
      if (left && left->is_integer(0)) return sound().acquire(request);
      if (env().now() >= request.deadline) return result;
      env().wait(nullptr, env().now() + milliseconds(5), request.stop);
    }
  }
  ReleaseResult release(const Lease& lease) override {
    if (lease.mode == Mode::exclusive) return sound().release(lease);
    (void)redis().call({"DECR", lease.key + ":sharers"});
    return {ReleaseOutcome::released, {}};
  }
};

/// Without looking who is there.
struct LetsSharersIn : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    if (request.mode == Mode::exclusive) return sound().acquire(request);
    return {.outcome = AcquireOutcome::acquired,
            .lease = Lease{.key = std::string(request.key),
                           .token = "sharer",
                           .mode = Mode::shared,
                           .state = redis::valid_until(TimePoint::max())}};
  }
};

Factories all_factories() {
  Factories all{
      {Flaw::lets_two_in, construct<LetsTwoIn>},
      {Flaw::confuses_keys, construct<ConfusesKeys>},
      {Flaw::reenters_undeclared, construct<ReentersUndeclared>},
      {Flaw::repeats_fencing_numbers, construct<RepeatsFencingNumbers>},
      {Flaw::ignores_the_deadline, construct<IgnoresTheDeadline>},
      {Flaw::gives_up_early, construct<GivesUpEarly>},
      {Flaw::tries_twice, construct<TriesTwice>},
      {Flaw::never_retries, construct<NeverRetries>},
      {Flaw::ignores_a_stop, construct<IgnoresAStop>},
      {Flaw::heeds_a_stop_late, construct<HeedsAStopLate>},
      {Flaw::loses_track_when_stopped, construct<LosesTrackWhenStopped>},
      {Flaw::releases_unchecked, construct<ReleasesUnchecked>},
      {Flaw::forgets_its_own_expiry, construct<ReleasesUnchecked>},
      {Flaw::renews_unchecked, construct<RenewsUnchecked>},
      {Flaw::renews_nothing, construct<RenewsNothing>},
      {Flaw::leaves_an_unnamed_key, construct<LeavesAnUnnamedKey>},
      {Flaw::forgets_to_release, construct<ForgetsToRelease>},
      {Flaw::never_expires, construct<NeverExpires>},
      {Flaw::hands_out_old_leases, construct<HandsOutOldLeases>},
      {Flaw::counts_validity_from_the_answer, construct<CountsValidityFromTheAnswer>},
      {Flaw::lets_sharers_in, construct<LetsSharersIn>},
      {Flaw::lets_sharers_overtake, construct<LetsSharersOvertake>},
  };
  all.merge(locks_broken_towards_the_store());
  all.merge(locks_broken_towards_the_services());
  return all;
}

/// Its descriptor: that of the sound lock, unless the descriptor is the flaw.
Descriptor declaration_of(Flaw flaw) {
  Descriptor descriptor = sound_lock();
  descriptor.name = "broken";
  if (flaw == Flaw::excludes_as_a_control) descriptor.traits.promises_exclusion = false;
  if (flaw == Flaw::repeats_fencing_numbers) descriptor.traits.fencing = true;
  if (flaw == Flaw::expires_undeclared) descriptor.traits.expiry = Expiry::none;
  if (flaw == Flaw::calls_half_a_lock_failure) {
    descriptor.acquire_commands.emplace_back("EXPIRE key seconds");
  }
  if (flaw == Flaw::declares_too_much) descriptor.acquire_commands.emplace_back("WAIT 1 100");
  if (flaw == Flaw::forgets_to_renew || flaw == Flaw::declares_another_renewal) {
    descriptor.traits.renews = RenewalTiming{};
    descriptor.renew_commands = {"EXPIRE key seconds"};
  }
  if (flaw == Flaw::lets_newcomers_barge) {
    descriptor.traits.fair = true;
    descriptor.traits.waiting = WaitPolicy::backoff(milliseconds(5), milliseconds(100));
  }
  if (flaw == Flaw::shares_with_nobody || flaw == Flaw::lets_sharers_in ||
      flaw == Flaw::lets_sharers_overtake) {
    descriptor.traits.shared = true;
    descriptor.traits.fair = flaw == Flaw::lets_sharers_overtake;
  }
  if (flaw == Flaw::forgets_its_own_expiry) {
    descriptor.traits.release_check = OwnerCheck::local_clock;
  }
  return descriptor;
}

std::map<Flaw, Descriptor> all_broken_locks() {
  constexpr auto kLast = static_cast<int>(Flaw::tells_the_password);
  const Factories factories = all_factories();
  std::map<Flaw, Descriptor> locks;
  for (int i = 0; i <= kLast; ++i) {
    const Flaw flaw{i};
    Descriptor& lock = locks[flaw] = declaration_of(flaw);
    if (const auto made = factories.find(flaw); made != factories.end()) lock.make = made->second;
  }
  return locks;
}

}  // namespace

const Descriptor& sound_lock() {
  const Descriptor* sound = find_strategy("redis-set-nx-lua");
  if (sound == nullptr) throw std::logic_error("the sound lock to break is missing");
  return *sound;
}

const Descriptor& broken_lock(Flaw flaw) {
  static const std::map<Flaw, Descriptor> locks = all_broken_locks();
  return locks.at(flaw);
}

std::unique_ptr<redis::Connection> connection_to(const Context& context, Env& env) {
  const auto endpoint = redis::parse_endpoint(context.endpoints.find("redis")->second.front());
  if (!endpoint) throw std::invalid_argument(endpoint.error());
  return context.services.get_or_make<redis::ConnectionFactory>(redis::make_connection_factory)
      .make(*endpoint, context.options.timeouts(), env);
}

Flawed::Flawed(const Context& context)
    : env_(context.env),
      sound_(sound_lock().make(context)),
      redis_(connection_to(context, context.env)) {}

AcquireResult Flawed::try_once(AcquireRequest request) {
  request.deadline = env_.now();
  return sound_->acquire(request);
}

}  // namespace lockbench::test
