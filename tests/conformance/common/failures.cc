#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/common/waiter.h"

namespace lockbench::test {
namespace {

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

/// Killed while one client holds the lock and another waits for it.
std::string death_of_the_server_is_survived(const Descriptor& descriptor) {
  const auto tested = own_store();
  // Some go on trying to reach it until their deadline.
  constexpr seconds kLongest{20};
  Bench bench(descriptor, *tested, with_timeout(descriptor, seconds(4)));
  const auto holder = bench.client();
  const AcquireResult held = holder->acquire(bench.key(), patience());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  Waiter waiter(bench.client(), bench.key(), kLongest);
  if (!waiter.waits()) return "it did not wait";
  on_all(*tested, &testbed::Server::kill_hard);
  const AcquireResult& waited = waiter.join();
  if (waited.outcome != AcquireOutcome::failed && waited.outcome != AcquireOutcome::unknown) {
    return unexpected(waited, AcquireOutcome::failed);
  }
  const ReleaseOutcome released = holder->release(*held.lease);
  if (released != ReleaseOutcome::failed) return fmt::format("release gave {}", name_of(released));
  const AcquireResult dead = holder->acquire(bench.key(), seconds(2));
  if (dead.outcome != AcquireOutcome::failed) return unexpected(dead, AcquireOutcome::failed);

  for (testbed::Server* server : tested->servers()) must(server->restart(false));
  tested->settle();
  for (Client* client : {holder.get(), &waiter.client()}) {
    const AcquireResult again = client->acquire(bench.key(), patience());
    if (!again.lease) return "after a restart: " + unexpected(again, AcquireOutcome::acquired);
    if (client->release(*again.lease) != ReleaseOutcome::released) return "cannot be released";
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
  const AcquireResult next = client->acquire(bench.key() + ":next", patience());
  return next.lease ? std::string()
                    : "after the thaw: " + unexpected(next, AcquireOutcome::acquired);
}

/// Every time-out is far away, and the server stays frozen: only the stop can end the call.
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
  return {{"UnreachableServerIsNamed", has_store, unreachable_server_is_named},
          {"DeathOfTheServerIsSurvived", has_store, death_of_the_server_is_survived},
          {"FrozenServerIsGivenUp", has_store, frozen_server_is_given_up},
          {"StopEndsACallToAFrozenServer", has_store, stop_ends_a_call_to_a_frozen_server}};
}

}  // namespace lockbench::test
