#include "tests/conformance/common/waiter.h"

namespace lockbench::test {
namespace {

int servers() { return static_cast<int>(shared_store().servers().size()); }

/// Number of commands of an uncontended acquisition; for a quorum, to each server.
int commands_to_acquire(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  warm_up(*client, bench.key());
  client->trace().take();
  client->try_once(bench.key());
  return static_cast<int>(client->trace().take().size()) / servers();
}

void expect_no_lease(const AcquireResult& result, AcquireOutcome wanted,
                     const std::string& when = {}) {
  if (result.outcome != wanted) throw Broken(when + unexpected(result, wanted));
  if (result.lease) throw Broken(when + "a lease although nothing was acquired");
  for (const std::string& endpoint : shared_endpoints()) {
    if (result.reason.find(endpoint) != std::string::npos) return;
  }
  throw Broken(fmt::format("{}the reason \"{}\" names no endpoint", when, result.reason));
}

/// After a lost answer the lock is neither held nor free. A strategy that recognises its own lock
/// frees it; any other must declare that it gets stuck.
std::string lost_answer_is_unknown(const Descriptor& descriptor) {
  const bool sticks = has_hazard(descriptor, "lost-answer-acquire", HazardOutcome::stuck);
  const int commands = commands_to_acquire(descriptor);
  if (commands == 0) return "no command was reported";
  // A quorum tolerates one server, and late answers from the warm-up, for which a majority did not
  // wait, may come only now.
  const int lost = is_quorum(descriptor) ? 3 * servers() : 1;
  for (int n = 1; n <= commands; ++n) {
    Bench bench(descriptor);
    const auto client = bench.client();
    warm_up(*client, bench.key());
    client->faults().drop_answer((n - 1) * servers() + 1, lost);
    const AcquireResult result = client->try_once(bench.key());
    expect_no_lease(result, AcquireOutcome::unknown, fmt::format("answer {} lost: ", n));
    if (sticks && !bench.is_held()) return "declared to get stuck, but the lock is free";
    if (!sticks && !bench.becomes_free()) {
      return fmt::format("answer {} lost: the lock stays held by nobody", n);
    }
  }
  return {};
}

/// An unsent command had no effect, and neither may commands sent with it.
std::string unsent_command_is_a_failure(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  client->faults().drop_command(1, servers());
  const AcquireResult result = client->try_once(bench.key());
  expect_no_lease(result, AcquireOutcome::failed);
  if (!shared_store().keys().empty()) return "failed, yet something took effect";
  // The same instance works on.
  (void)granted(client->try_once(bench.key()), "afterwards: ");
  return {};
}

bool takes_several_commands(const Descriptor& descriptor) {
  return has_store(descriptor) && descriptor.acquire_commands.size() > 1;
}

/// At any point of an acquisition: earlier commands may have taken effect.
std::string cut_acquisition_is_no_grant(const Descriptor& descriptor) {
  const int commands = commands_to_acquire(descriptor);
  if (commands == 0) return "no command was reported";
  for (int n = 1; n <= commands; ++n) {
    Bench bench(descriptor);
    const auto client = bench.client();
    warm_up(*client, bench.key());
    client->faults().drop_command((n - 1) * servers() + 1, servers());
    const AcquireResult result = client->try_once(bench.key());
    // A server may not have noticed yet that a session's connection is gone.
    const bool ends = descriptor.traits.expiry == Expiry::session;
    const bool free = ends ? bench.becomes_free() : !bench.is_held();
    const AcquireOutcome wanted = free ? AcquireOutcome::failed : AcquireOutcome::unknown;
    expect_no_lease(result, wanted, fmt::format("command {} cut: ", n));
  }
  return {};
}

std::string lost_release_is_a_failure(const Descriptor& descriptor) {
  for (const bool sent : {false, true}) {
    HeldBench bench(kLongTtl, descriptor);
    sent ? bench.holder->faults().drop_answer(1, servers())
         : bench.holder->faults().drop_command(1, servers());
    const ReleaseResult released = bench.holder->lock().release(bench.held);
    if (released.outcome != ReleaseOutcome::failed) {
      return fmt::format("release gave {}, not failed", name_of(released.outcome));
    }
    if (released.reason.empty()) return "a failed release without a reason";
    // A session's lock ends with the connection, so there is no release.
    if (descriptor.traits.expiry == Expiry::session) continue;
    if (!sent && !bench.is_held()) return "the release never left, yet the lock is free";
  }
  return {};
}

using Step = tl::expected<void, std::string> (testbed::Server::*)();

void on_all(TestStore& tested, Step step) {
  for (testbed::Server* server : tested.servers()) must((server->*step)());
}

StrategyOptions with_timeout(const Descriptor& descriptor, Duration timeout) {
  StrategyOptions options = impatient(descriptor);
  options.command_timeout = timeout;
  options.node_timeout = timeout;
  return options;
}

std::string unreachable_server_is_named(const Descriptor& descriptor) {
  const std::uint16_t port = closed_port();
  Bench bench(descriptor, url_of(port));
  const auto client = bench.unconnected_client();
  const std::string endpoint = fmt::format("127.0.0.1:{}", port);
  const auto connected = client->connect();
  if (connected) return "connected to nothing";
  if (connected.error().message.find(endpoint) == std::string::npos) {
    return fmt::format("\"{}\" does not name {}", connected.error().message, endpoint);
  }
  const AcquireResult result = client->acquire(bench.key(), patience());
  if (result.outcome != AcquireOutcome::failed) return unexpected(result, AcquireOutcome::failed);
  if (result.reason.find(endpoint) == std::string::npos)
    return "acquire does not name the endpoint";
  return {};
}

/// The server is killed while one client holds the lock and another waits for it.
std::string death_of_the_server_is_survived(const Descriptor& descriptor) {
  const auto tested = own_store();
  // Some keep trying to reach it until their deadline.
  constexpr seconds kLongest{20};
  Bench bench(descriptor, *tested, with_timeout(descriptor, seconds(4)));
  const auto holder = bench.client();
  const Lease held = granted(holder->acquire(bench.key(), patience()));
  Waiter waiter(bench.client(), bench.key(), kLongest);
  if (!waiter.waits()) return "it did not wait";
  on_all(*tested, &testbed::Server::kill_hard);
  const AcquireResult& waited = waiter.join();
  if (waited.outcome != AcquireOutcome::failed && waited.outcome != AcquireOutcome::unknown) {
    return unexpected(waited, AcquireOutcome::failed);
  }
  const ReleaseOutcome released = holder->release(held);
  // A lock that ends with its connection is lost for sure once that is closed.
  const bool lost = released == ReleaseOutcome::not_owner && descriptor.traits.ends_with_connection;
  if (released != ReleaseOutcome::failed && !lost) {
    return fmt::format("release gave {}", name_of(released));
  }
  const AcquireResult dead = holder->acquire(bench.key(), seconds(2));
  if (dead.outcome != AcquireOutcome::failed) return unexpected(dead, AcquireOutcome::failed);

  for (testbed::Server* server : tested->servers()) must(server->restart(false));
  tested->settle();
  for (Client* client : {holder.get(), &waiter.client()}) {
    const Lease again = granted(client->acquire(bench.key(), patience()), "after a restart: ");
    client->give_back(again);
  }
  return {};
}

std::string frozen_server_is_given_up(const Descriptor& descriptor) {
  const auto tested = own_store();
  Bench bench(descriptor, *tested, with_timeout(descriptor, seconds(2)));
  const auto client = bench.client();
  warm_up(*client, bench.key());
  on_all(*tested, &testbed::Server::freeze);
  const AcquireResult result = client->try_once(bench.key());
  on_all(*tested, &testbed::Server::thaw);
  if (result.outcome != AcquireOutcome::unknown) return unexpected(result, AcquireOutcome::unknown);
  (void)granted(client->acquire(bench.key() + ":next", patience()), "after the thaw: ");
  return {};
}

/// All timeouts are long, and the server stays frozen: only the stop can end the call.
std::string stop_ends_a_call_to_a_frozen_server(const Descriptor& descriptor) {
  const auto tested = own_store();
  StrategyOptions options = with_timeout(descriptor, 2 * kPatience);
  options.after_stop = milliseconds(50);
  Bench bench(descriptor, *tested, options);
  auto client = bench.client();
  warm_up(*client, bench.key());
  client->trace().take();
  on_all(*tested, &testbed::Server::freeze);
  Waiter calling(std::move(client), bench.key());
  const bool sent = calling.client().trace().await_command();
  calling.stop();
  const bool ended = comes_true([&] { return calling.is_done(); });
  on_all(*tested, &testbed::Server::thaw);
  const AcquireOutcome outcome = calling.join().outcome;
  if (!sent) return "it sent nothing";
  if (!ended) return "the stop did not end it";
  const bool fits = outcome == AcquireOutcome::unknown || outcome == AcquireOutcome::abandoned;
  return fits ? "" : unexpected(calling.join(), AcquireOutcome::unknown);
}

}  // namespace

std::vector<Property> failure_properties() {
  return {{"LostAnswerIsUnknown", has_store, lost_answer_is_unknown},
          {"UnsentCommandIsAFailure", has_store, unsent_command_is_a_failure},
          {"CutAcquisitionIsNoGrant", takes_several_commands, cut_acquisition_is_no_grant},
          {"LostReleaseIsAFailure", has_store, lost_release_is_a_failure},
          {"UnreachableServerIsNamed", has_store, unreachable_server_is_named},
          {"DeathOfTheServerIsSurvived", has_store, death_of_the_server_is_survived},
          {"FrozenServerIsGivenUp", has_store, frozen_server_is_given_up},
          {"StopEndsACallToAFrozenServer", has_store, stop_ends_a_call_to_a_frozen_server}};
}

}  // namespace lockbench::test
