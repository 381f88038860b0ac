#include <algorithm>

#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/waiter.h"
#include "tests/conformance/redis/own_properties.h"

namespace lockbench::test {
namespace {

/// Whether the client sleeps until a message comes. A polling client sleeps for less.
bool listens(Waiter& waiter) { return waiter.client().trace().await_sleep(); }

/// By its last attempt at the deadline it would get a released lock, too.
std::string expect_woken(Waiter& waiter) {
  const AcquireResult& result = waiter.join();
  if (!result.lease) return unexpected(result, AcquireOutcome::acquired);
  return waiter.client().trace().overslept() ? "it was not woken" : "";
}

std::string release_wakes_who_listens(const Descriptor& descriptor) {
  Bench bench(descriptor, notified());
  const auto holder = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  Waiter waiter(bench.client(), bench.key());
  if (!listens(waiter)) return "it does not listen";
  const ReleaseOutcome released = holder->release(*held.lease);
  if (released != ReleaseOutcome::released)
    return fmt::format("release gave {}", name_of(released));
  return expect_woken(waiter);
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
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  Waiter leaves(bench.client(), bench.key());
  if (!listens(leaves)) return "the first does not listen";
  Waiter stays(bench.client(), bench.key());
  if (!listens(stays)) return "the second does not listen";
  // Woken, it asks, and cannot.
  leaves.client().faults().drop_command(1);
  holder->release(*held.lease);
  if (leaves.join().lease) return "the message did not wake who came first";
  const std::string wrong = expect_woken(stays);
  return wrong.empty() ? wrong : "the second: " + wrong;
}

/// Whose subscription is cut while it waits: it subscribes again, and goes on.
std::string dying_subscription_is_survived(const Descriptor& descriptor) {
  Bench bench(descriptor, notified());
  const auto holder = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  Waiter waiter(bench.client(), bench.key());
  if (!listens(waiter)) return "it does not listen";
  waiter.client().trace().take();
  RedisProbe(shared_store().server().port()).ask({"CLIENT", "KILL", "TYPE", "pubsub"});
  if (!bench.worlds().await("SUBSCRIBE", 2, patience())) return "it did not subscribe again";
  const auto asks = [&] { return !waiter.client().trace().take().empty(); };
  if (!comes_true(asks) || !listens(waiter)) return "it does not listen again";
  holder->release(*held.lease);
  return expect_woken(waiter);
}

/// Released before a client asks, and after it has asked once or twice: a message that came before
/// it listens would leave it waiting until the lock expires.
std::string no_release_is_missed(const Descriptor& descriptor) {
  constexpr int kRounds = 15;
  Bench bench(descriptor, notified());
  const auto holder = bench.client();
  for (int round = 0; round < kRounds; ++round) {
    const std::string key = fmt::format("{}:{}", bench.key(), round);
    const AcquireResult held = holder->try_once(key);
    if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
    Waiter waiter(bench.client(), key);
    std::size_t asked = 0;
    const auto has_asked = [&] {
      asked += waiter.client().trace().take().size();
      return asked >= static_cast<std::size_t>(round % 3);
    };
    if (!comes_true(has_asked)) return "it does not ask";
    // In some of the rounds it surely listens by then.
    if (round % 5 == 4 && !listens(waiter)) return "it does not listen";
    holder->release(*held.lease);
    if (std::string wrong = expect_woken(waiter); !wrong.empty()) return wrong;
    waiter.client().release(*waiter.join().lease);
  }
  return {};
}

/// A lock that nobody releases is told by nobody: who listens finds out by himself.
std::string listener_outlasts_a_crashed_holder(const Descriptor& descriptor) {
  Bench bench(descriptor, unrenewed(notified()));
  auto holder = bench.client();
  const auto waiter = bench.client();
  if (!holder->try_once(bench.key(), kShortTtl).lease) return "the lock was not free";
  holder.reset();
  // Without a message a listener asks again after its own TTL.
  const AcquireResult result = waiter->acquire(bench.key(), patience(), kShortTtl);
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
  const auto gone = [&] { return probe.other_connections() <= before; };
  if (comes_true(gone)) return {};
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
