#include <algorithm>

#include "tests/conformance/common/waiter.h"
#include "tests/conformance/redis/redis_test_store.h"

namespace lockbench::test {
namespace {

bool uses_redis(const Descriptor& descriptor) { return descriptor.backend == "redis"; }

/// EVALSHA gets NOSCRIPT once and is followed by one EVAL.
std::string survives_a_script_flush(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  warm_up(*client, bench.key());
  RedisProbe(shared_redis().port()).ask({"SCRIPT", "FLUSH"});
  RedisMonitor monitor(shared_redis().port());
  const Lease held = granted(client->try_once(bench.key()));
  client->give_back(held);
  const std::vector<std::string> arrived = monitor.take();
  const auto fallen_back = std::count(arrived.begin(), arrived.end(), "EVAL");
  if (fallen_back == 0) return "no EVAL, though the server had forgotten all scripts";
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    if (arrived[i] == "EVAL" && (i == 0 || arrived[i - 1] != "EVALSHA")) {
      return "EVAL without EVALSHA before it: " + fmt::format("{}", fmt::join(arrived, " "));
    }
  }
  return bench.is_held() ? "still held" : "";
}

bool uses_scripts(const Descriptor& descriptor) {
  const auto is_script = [](std::string_view command) { return command.starts_with("EVALSHA"); };
  return std::any_of(descriptor.acquire_commands.begin(), descriptor.acquire_commands.end(),
                     is_script) ||
         std::any_of(descriptor.release_commands.begin(), descriptor.release_commands.end(),
                     is_script);
}

/// Whether a text of a strategy contains a secret.
bool tells_secrets(std::string_view text) {
  return text.find(kPlainPassword) != std::string_view::npos ||
         text.find(kPlainPasswordInUrl) != std::string_view::npos;
}

/// For a user with few rights.
std::string works_over_a_unix_socket(const Descriptor& descriptor) {
  constexpr int kDatabase = 5;
  RedisProbe(shared_redis().port()).ask({"FLUSHALL"});
  Bench bench(descriptor,
              fmt::format("unix://{}:{}@{}?db={}", kPlainUser, kPlainPasswordInUrl,
                          (shared_redis().data_folder() / "socket").string(), kDatabase));
  const auto client = bench.client();
  const Lease held = granted(client->try_once(bench.key()));
  if (!RedisProbe(shared_redis().port(), kDatabase).exists(bench.key())) {
    return fmt::format("the lock is not in database {}", kDatabase);
  }
  if (!bench.is_held()) return "another client gets it too";
  client->give_back(held);
  for (const TracedCommand& command : client->trace().take()) {
    if (tells_secrets(command.endpoint + " " + command.name + " " + command.key)) {
      return "the password was told to the Env, with " + command.name;
    }
  }
  return {};
}

/// A correct password of another user is as secret as a wrong one.
std::string wrong_password_stays_secret(const Descriptor& descriptor) {
  Bench bench(descriptor, fmt::format("redis://nobody:{}@127.0.0.1:{}", kPlainPasswordInUrl,
                                      shared_redis().port()));
  const auto client = bench.unconnected_client();
  const auto connected = client->connect();
  if (connected) return "connected with a wrong password";
  const std::string endpoint = fmt::format("127.0.0.1:{}", shared_redis().port());
  if (connected.error().message.find(endpoint) == std::string::npos) {
    return fmt::format("\"{}\" does not name {}", connected.error().message, endpoint);
  }
  const AcquireResult result = client->try_once(bench.key());
  if (result.outcome != AcquireOutcome::failed) return unexpected(result, AcquireOutcome::failed);
  const bool told = tells_secrets(connected.error().message) || tells_secrets(result.reason);
  return told ? "the message tells the password" : "";
}

/// Whether the client sleeps until a message comes. A polling client sleeps for less.
bool listens(Waiter& waiter) { return waiter.client().trace().await_sleep(); }

/// Its last attempt at the deadline would also get a released lock, so check that it is woken.
std::string expect_woken(Waiter& waiter) {
  (void)granted(waiter.join());
  return waiter.client().trace().overslept() ? "it was not woken" : "";
}

std::ptrdiff_t messages(RedisMonitor& monitor) {
  const auto commands = monitor.take_with_scripts();
  return std::count(commands.begin(), commands.end(), "PUBLISH");
}

/// One message per release, and none if nothing is freed.
std::string only_releases_are_told(const Descriptor& descriptor) {
  HeldBench bench(kLongTtl, descriptor, unrenewed(notified()));
  RedisMonitor monitor(shared_store().server().port());
  if (descriptor.traits.reentrant) {
    const Lease inner = granted(bench.holder->try_once(bench.key()), "re-entry: ");
    bench.holder->release(inner);
    if (messages(monitor) != 0) return "told of a release that frees nothing";
  }
  bench.holder->release(bench.held);
  if (const auto told = messages(monitor); told != 1) {
    return fmt::format("a release was told {} times", told);
  }
  if (descriptor.traits.release_check != OwnerCheck::atomic) return {};
  bench.holder->release(bench.held);
  return messages(monitor) == 0 ? "" : "told of a release that frees nothing";
}

/// If the woken client leaves, the next one is woken.
std::string unused_wakeups_are_passed_on(const Descriptor& descriptor) {
  HeldBench bench(kLongTtl, descriptor, notified());
  Waiter leaves(bench.client(), bench.key());
  if (!listens(leaves)) return "the first does not listen";
  Waiter stays(bench.client(), bench.key());
  if (!listens(stays)) return "the second does not listen";
  // After its wake-up its command is dropped.
  leaves.client().faults().drop_command(1);
  bench.holder->release(bench.held);
  if (leaves.join().lease) return "the message did not wake who came first";
  const std::string wrong = expect_woken(stays);
  return wrong.empty() ? wrong : "the second: " + wrong;
}

/// A waiter whose subscription is cut subscribes again and continues.
std::string dying_subscription_is_survived(const Descriptor& descriptor) {
  HeldBench bench(kLongTtl, descriptor, notified());
  Waiter waiter(bench.client(), bench.key());
  if (!listens(waiter)) return "it does not listen";
  waiter.client().trace().take();
  RedisProbe(shared_store().server().port()).ask({"CLIENT", "KILL", "TYPE", "pubsub"});
  if (!bench.worlds().await("SUBSCRIBE", 2, patience())) return "it did not subscribe again";
  const auto asks = [&] { return !waiter.client().trace().take().empty(); };
  if (!comes_true(asks) || !listens(waiter)) return "it does not listen again";
  bench.holder->release(bench.held);
  return expect_woken(waiter);
}

/// The lock is released before a client asks, or after it has asked once or twice. If it missed the
/// message before it listens, it would wait until the lock expires.
std::string no_release_is_missed(const Descriptor& descriptor) {
  constexpr int kRounds = 15;
  Bench bench(descriptor, notified());
  const auto holder = bench.client();
  for (int round = 0; round < kRounds; ++round) {
    const std::string key = fmt::format("{}:{}", bench.key(), round);
    const Lease held = granted(holder->try_once(key));
    Waiter waiter(bench.client(), key);
    std::size_t asked = 0;
    const auto has_asked = [&] {
      asked += waiter.client().trace().take().size();
      return asked >= static_cast<std::size_t>(round % 3);
    };
    if (!comes_true(has_asked)) return "it does not ask";
    // In some rounds it certainly listens by then.
    if (round % 5 == 4 && !listens(waiter)) return "it does not listen";
    holder->release(held);
    if (std::string wrong = expect_woken(waiter); !wrong.empty()) return wrong;
    waiter.client().release(*waiter.join().lease);
  }
  return {};
}

/// A crashed holder sends no message: the listener must find out by itself.
std::string listener_outlasts_a_crashed_holder(const Descriptor& descriptor) {
  Bench bench(descriptor, unrenewed(notified()));
  auto holder = bench.client();
  const auto waiter = bench.client();
  if (!holder->try_once(bench.key(), kShortTtl).lease) return "the lock was not free";
  holder.reset();
  // Without a message, a listener asks again after its own TTL.
  (void)granted(waiter->acquire(bench.key(), patience(), kShortTtl));
  return {};
}

bool can_notify_and_expires(const Descriptor& descriptor) {
  // If losers prolong the holder's TTL, it never ends.
  return can_notify(descriptor) && descriptor.traits.expiry == Expiry::ttl &&
         !has_hazard(descriptor, "crash-holding", HazardOutcome::stuck);
}

/// The effect of a renewal timer on a successor's lock.
std::string timer_looks_at_the_owner_as_declared(const Descriptor& descriptor) {
  constexpr seconds kTtl{40}, kSuccessors{10};
  const bool unaware = descriptor.traits.renew_check == OwnerCheck::none;
  Bench bench(descriptor, renewed_every(milliseconds(20)));
  const auto former = bench.client();
  const Lease lost = granted(former->try_once(bench.key(), kTtl));
  if (!bench.worlds().await_any(1, patience())) return "it was never renewed";
  // So that no renewal hits the moment without a holder.
  bench.worlds().hold_back_all();
  RedisProbe probe(shared_store().server().port());
  Bench others(descriptor, shared_store().server().url(), unrenewed());
  others.number_clients_after(1000);
  const auto successor = others.client();
  if (!bench.worlds().await_held(patience())) return "it was renewed only once";
  probe.remove(bench.named_keys());
  const AcquireResult gained = successor->try_once(bench.key(), kSuccessors);
  bench.worlds().let_go();
  if (!gained.lease) return "the successor: " + unexpected(gained, AcquireOutcome::acquired);
  const auto prolonged = [&] {
    const auto left = probe.time_to_live(bench.key());
    return left && *left > 2 * kSuccessors;  // a store may round up
  };
  (void)comes_true([&] { return lost.state->lost_at() || prolonged(); });
  if (prolonged() != unaware) {
    return unaware ? "another's lock was not prolonged, as it is declared to be"
                   : "another's lock was prolonged";
  }
  if (!unaware && !lost.state->lost_at()) return "the lease does not know that it is lost";
  return gained.lease->state->lost_at() ? "the holder's lease counts as lost" : "";
}

/// A release that overtakes a renewal does not wait for it. The renewal then changes nothing,
/// unless it does not check the owner.
std::string release_overtakes_a_renewal(const Descriptor& descriptor) {
  constexpr seconds kTtl{40}, kSuccessors{10};
  const bool unaware = descriptor.traits.renew_check == OwnerCheck::none;
  Bench bench(descriptor, renewed_every(milliseconds(20)));
  Bench others(descriptor, shared_store().server().url(), unrenewed());
  others.number_clients_after(1000);
  const auto holder = bench.client(), witness = bench.client(), successor = others.client();
  const Lease held = granted(holder->try_once(bench.key(), kTtl));
  if (!bench.worlds().await_any(1, patience())) return "it was never renewed";
  bench.worlds().hold_back_all();
  if (!bench.worlds().await_held(patience())) return "it was renewed only once";
  const ReleaseOutcome released = holder->release(held);
  const TimePoint was_valid_until = held.state->valid_until();
  const AcquireResult gained = successor->try_once(bench.key(), kSuccessors);
  const int renewals = bench.worlds().ended();
  bench.worlds().let_go();
  // A later event on the same thread shows that its answer has been handled.
  const AcquireResult later = witness->try_once(bench.key() + ":later", kTtl);
  const bool landed = bench.worlds().await_any(renewals + 2, patience());
  if (released != ReleaseOutcome::released)
    return fmt::format("release gave {}", name_of(released));
  if (!gained.lease) return "after the release: " + unexpected(gained, AcquireOutcome::acquired);
  if (!landed) return "the renewal never landed";
  if (held.state->lost_at()) return "a released lease counts as lost";
  if (held.state->valid_until() != was_valid_until) return "a released lease was prolonged";
  const auto left = RedisProbe(shared_store().server().port()).time_to_live(bench.key());
  const bool prolonged = left && *left > kSuccessors;
  if (prolonged != unaware) {
    return unaware ? "the successor's lock was not prolonged, as it is declared to be"
                   : "the successor's lock was prolonged";
  }
  return {};
}

bool can_be_renewed(const Descriptor& descriptor) { return descriptor.traits.renewable; }

}  // namespace

std::vector<Property> service_properties() {
  return {{"OnlyReleasesAreTold", can_notify, only_releases_are_told},
          {"UnusedWakeupsArePassedOn", can_notify, unused_wakeups_are_passed_on},
          {"DyingSubscriptionIsSurvived", can_notify, dying_subscription_is_survived},
          {"ListenerOutlastsACrashedHolder", can_notify_and_expires,
           listener_outlasts_a_crashed_holder},
          {"NoReleaseIsMissed", can_notify, no_release_is_missed},
          {"TimerLooksAtTheOwnerAsDeclared", can_be_renewed, timer_looks_at_the_owner_as_declared},
          {"ReleaseOvertakesARenewal", can_be_renewed, release_overtakes_a_renewal}};
}

std::vector<Property> redis_properties() {
  std::vector<Property> own = service_properties();
  own.push_back({"SurvivesAScriptFlush", uses_scripts, survives_a_script_flush});
  own.push_back({"WorksOverAUnixSocket", uses_redis, works_over_a_unix_socket});
  own.push_back({"WrongPasswordStaysSecret", uses_redis, wrong_password_stays_secret});
  return own;
}

}  // namespace lockbench::test
