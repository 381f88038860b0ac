#include <algorithm>
#include <thread>

#include "tests/conformance/common/bench.h"
#include "tests/conformance/redis/own_properties.h"

namespace lockbench::test {
namespace {

/// Longer than any noise, shorter than any TTL.
constexpr seconds kPatience{3};

/// A client that waits for the lock on a thread of its own, whose messages come in.
class Listener {
 public:
  Listener(Bench& bench, Client& client) : bench_(bench), client_(client) {
    thread_ = std::jthread([this] {
      result_ = client_.acquire(bench_.key(), kPatience);
      ended_ = client_.now();
    });
  }

  /// Until the server has confirmed the subscription, and the client has asked once more.
  bool await_listening() {
    if (!bench_.worlds().await("SUBSCRIBE", 1, seconds(5))) return false;
    const TimePoint limit = client_.now() + seconds(5);
    std::size_t asked = 0;
    while (asked < 2 && client_.now() < limit) {
      asked += client_.trace().take().size();
      std::this_thread::sleep_for(milliseconds(1));
    }
    return asked >= 2;
  }
  /// Until it sleeps: it asks no more, also not as one who polls for want of a subscription.
  bool await_quiet() {
    constexpr milliseconds kSilence{250};
    const TimePoint limit = client_.now() + seconds(5);
    do {
      std::this_thread::sleep_for(kSilence);
      if (client_.trace().take().empty()) return true;
    } while (client_.now() < limit);
    return false;
  }
  void join() { thread_.join(); }
  const AcquireResult& result() const { return result_; }
  TimePoint ended() const { return ended_; }

 private:
  Bench& bench_;
  Client& client_;
  AcquireResult result_;
  TimePoint ended_;
  std::jthread thread_;
};

/// Far sooner than by the lock's end, and without asking in between.
std::string release_wakes_who_listens(const Descriptor& descriptor) {
  // Long enough for a client that polls to send a command.
  constexpr milliseconds kHold{300};
  constexpr std::uint32_t kAttempts = 4;  // taken, subscribed, perhaps not yet heard, released
  Bench bench(descriptor, notified());
  const auto holder = bench.client();
  const auto waiter = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  Listener listener(bench, *waiter);
  const bool listens = listener.await_listening();
  std::this_thread::sleep_for(kHold);
  const TimePoint begin = holder->now();
  const ReleaseOutcome released = holder->release(*held.lease);
  listener.join();
  if (!listens) return "it did not subscribe";
  if (released != ReleaseOutcome::released)
    return fmt::format("release gave {}", name_of(released));
  const AcquireResult& result = listener.result();
  if (!result.lease) return unexpected(result, AcquireOutcome::acquired);
  if (listener.ended() - begin > kSlack) {
    return fmt::format("woken after {:.0f} ms", in_ms(listener.ended() - begin));
  }
  if (result.attempts > kAttempts) return fmt::format("it asked {} times", result.attempts);
  return {};
}

std::ptrdiff_t messages(RedisMonitor& monitor) {
  const auto commands = monitor.take_with_scripts();
  return std::count(commands.begin(), commands.end(), "PUBLISH");
}

/// One message for one release, and none for what frees nothing.
std::string only_releases_are_told(const Descriptor& descriptor) {
  Bench bench(descriptor, unrenewed(notified()));
  const auto holder = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  RedisMonitor monitor(shared_store().server().port());
  if (descriptor.traits.reentrant) {
    const AcquireResult inner = holder->try_once(bench.key());
    if (!inner.lease) return "re-entry: " + unexpected(inner, AcquireOutcome::acquired);
    holder->release(*inner.lease);
    if (messages(monitor) != 0) return "told of a release that frees nothing";
  }
  holder->release(*held.lease);
  if (const auto told = messages(monitor); told != 1) {
    return fmt::format("a release was told {} times", told);
  }
  if (descriptor.traits.release_check != OwnerCheck::atomic) return {};
  holder->release(*held.lease);
  return messages(monitor) == 0 ? "" : "told of a release that frees nothing";
}

/// The next one is woken when the client leaves that the message woke.
std::string unused_wakeups_are_passed_on(const Descriptor& descriptor) {
  Bench bench(descriptor, notified());
  const auto holder = bench.client();
  const auto first = bench.client();
  const auto second = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  Listener leaves(bench, *first);
  // Quiet, so that the command dropped below is the one that the release brings about.
  if (!leaves.await_listening() || !leaves.await_quiet()) return "the first did not subscribe";
  Listener stays(bench, *second);
  // Quiet, or it might come upon the released lock by a command that was under way.
  if (!stays.await_listening() || !stays.await_quiet()) return "the second did not subscribe";
  // Woken, it asks, and cannot.
  first->faults().drop_command(1);
  const TimePoint begin = holder->now();
  holder->release(*held.lease);
  leaves.join();
  stays.join();
  if (leaves.result().lease) return "the message did not wake who came first";
  if (!stays.result().lease) {
    return "the second: " + unexpected(stays.result(), AcquireOutcome::acquired);
  }
  const Duration taken = stays.ended() - begin;
  return taken <= kSlack ? "" : fmt::format("the second was woken after {:.0f} ms", in_ms(taken));
}

/// Whose subscription is cut while it waits: it subscribes again, and goes on.
std::string dying_subscription_is_survived(const Descriptor& descriptor) {
  Bench bench(descriptor, notified());
  const auto holder = bench.client();
  const auto waiter = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  Listener listener(bench, *waiter);
  if (!listener.await_listening()) return "it did not subscribe";
  RedisProbe(shared_store().server().port()).ask({"CLIENT", "KILL", "TYPE", "pubsub"});
  if (!bench.worlds().await("SUBSCRIBE", 2, seconds(5))) return "it did not subscribe again";
  if (!listener.await_quiet()) return "it goes on asking after it has subscribed again";
  const TimePoint begin = holder->now();
  holder->release(*held.lease);
  listener.join();
  if (!listener.result().lease) return unexpected(listener.result(), AcquireOutcome::acquired);
  const Duration taken = listener.ended() - begin;
  return taken <= kSlack ? "" : fmt::format("woken after {:.0f} ms", in_ms(taken));
}

/// Released again and again while a client subscribes: a message that came before it listens would
/// leave it waiting until the lock expires.
std::string no_release_is_missed(const Descriptor& descriptor) {
  constexpr int kRounds = 60;
  Bench bench(descriptor, notified());
  const auto holder = bench.client();
  const auto waiter = bench.client();
  for (int round = 0; round < kRounds; ++round) {
    const std::string key = fmt::format("{}:{}", bench.key(), round);
    const AcquireResult held = holder->try_once(key);
    if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
    AcquireResult gained;
    Duration taken{};
    waiter->trace().take();
    std::thread waiting([&] {
      const TimePoint begin = waiter->now();
      gained = waiter->acquire(key, kPatience);
      taken = waiter->now() - begin;
    });
    // From before its first command to well into its waiting.
    const TimePoint at = holder->now() + std::chrono::microseconds(5) * round * round;
    while (holder->now() < at) std::this_thread::yield();
    holder->release(*held.lease);
    waiting.join();
    if (!gained.lease) return unexpected(gained, AcquireOutcome::acquired);
    if (taken > kSlack)
      return fmt::format("round {}: granted after {:.0f} ms", round, in_ms(taken));
    waiter->release(*gained.lease);
  }
  return {};
}

/// A lock that nobody releases is told by nobody: who listens finds out by himself.
std::string listener_outlasts_a_crashed_holder(const Descriptor& descriptor) {
  constexpr milliseconds kTtl{1000};
  Bench bench(descriptor, unrenewed(notified()));
  auto holder = bench.client();
  const auto waiter = bench.client();
  if (!holder->try_once(bench.key(), kTtl).lease) return "the lock was not free";
  holder.reset();
  const AcquireResult result = waiter->acquire(bench.key(), 2 * kTtl + kSlack, kTtl);
  return result.lease ? std::string() : unexpected(result, AcquireOutcome::acquired);
}

/// A client that has waited leaves neither key nor connection nor thread.
std::string listener_leaves_nothing(const Descriptor& descriptor) {
  RedisProbe probe(shared_store().server().port());
  const int before = probe.other_connections();
  {
    Bench bench(descriptor, unrenewed(notified()));
    const auto holder = bench.client();
    const auto waiter = bench.client();
    const AcquireResult held = holder->try_once(bench.key());
    if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
    waiter->acquire(bench.key(), milliseconds(50));
    holder->release(*held.lease);
    const auto named = bench.named_keys();
    for (const std::string& key : probe.keys()) {
      if (key == bench.key() || std::find(named.begin(), named.end(), key) == named.end()) {
        return "left in the store: " + key;
      }
    }
  }
  if (eventually([&] { return probe.other_connections() <= before; }, seconds(1))) return {};
  return fmt::format("left behind: {} connections", probe.other_connections() - before);
}

bool can_notify_and_expires(const Descriptor& descriptor) {
  // Where losers prolong the holder's TTL it has no end.
  return can_notify(descriptor) && descriptor.traits.expiry == Expiry::ttl &&
         !has_hazard(descriptor, "crash-holding", HazardOutcome::stuck);
}

}  // namespace

std::vector<Property> notification_properties() {
  return {{"ReleaseWakesWhoListens", can_notify, release_wakes_who_listens},
          {"OnlyReleasesAreTold", can_notify, only_releases_are_told},
          {"UnusedWakeupsArePassedOn", can_notify, unused_wakeups_are_passed_on},
          {"DyingSubscriptionIsSurvived", can_notify, dying_subscription_is_survived},
          {"ListenerOutlastsACrashedHolder", can_notify_and_expires,
           listener_outlasts_a_crashed_holder},
          {"NoReleaseIsMissed", can_notify, no_release_is_missed},
          {"ListenerLeavesNothing", can_notify, listener_leaves_nothing}};
}

}  // namespace lockbench::test
