#include <stop_token>
#include <thread>

#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"

namespace lockbench::test {
namespace {

constexpr milliseconds kTimeout{200};
/// One answer that does not come, and one more for tidying up.
constexpr Duration kBound = 3 * kTimeout + kSlack;

using Step = tl::expected<void, std::string> (testbed::Server::*)();

void on_all(TestStore& tested, Step step) {
  for (testbed::Server* server : tested.servers()) must((server->*step)());
}

StrategyOptions with_timeout(const Descriptor& descriptor, Duration timeout) {
  StrategyOptions options = impatient(descriptor);
  options.command_timeout = timeout;
  return options;
}

std::string too_slow(TimePoint begin, Duration bound) {
  const Duration taken = BootClock::now() - begin;
  return taken <= bound ? std::string() : fmt::format("took {:.0f} ms", in_ms(taken));
}

std::string unreachable_server_is_named(const Descriptor& descriptor) {
  const std::uint16_t port = closed_port();
  Bench bench(descriptor, url_of(port));
  const TimePoint begin = BootClock::now();
  const auto client = bench.unconnected_client();
  const std::string endpoint = fmt::format("127.0.0.1:{}", port);
  const auto connected = client->connect();
  if (connected) return "connected to nothing";
  if (connected.error().message.find(endpoint) == std::string::npos) {
    return fmt::format("\"{}\" does not name {}", connected.error().message, endpoint);
  }
  const AcquireResult result = client->acquire(bench.key(), seconds(10));
  if (result.outcome != AcquireOutcome::failed) return unexpected(result, AcquireOutcome::failed);
  if (result.reason.find(endpoint) == std::string::npos)
    return "acquire does not name the endpoint";
  return too_slow(begin, kSlack);
}

/// A busy machine may answer one attempt too late, and an attempt may find what kept a majority
/// from being asked.
AcquireResult try_some_times(Client& client, const std::string& key) {
  AcquireResult result = client.try_once(key);
  for (int again = 0; again < 3 && !result.lease; ++again) result = client.try_once(key);
  return result;
}

/// Killed while one client holds the lock and another waits for it.
std::string death_of_the_server_is_survived(const Descriptor& descriptor) {
  const auto tested = own_store();
  Bench bench(descriptor, *tested, with_timeout(descriptor, kTimeout));
  const auto holder = bench.client();
  const auto waiter = bench.client();
  const AcquireResult held = try_some_times(*holder, bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  AcquireResult waited;
  std::thread waiting([&] { waited = waiter->acquire(bench.key(), seconds(20)); });
  const bool has_waited = waiter->trace().await_waiting(seconds(5));
  on_all(*tested, &testbed::Server::kill_hard);
  const TimePoint begin = BootClock::now();
  waiting.join();
  if (!has_waited) return "it did not wait";
  if (waited.outcome != AcquireOutcome::failed && waited.outcome != AcquireOutcome::unknown) {
    return unexpected(waited, AcquireOutcome::failed);
  }
  const ReleaseOutcome released = holder->release(*held.lease);
  if (released != ReleaseOutcome::failed) return fmt::format("release gave {}", name_of(released));
  const AcquireResult dead = holder->acquire(bench.key(), seconds(20));
  if (dead.outcome != AcquireOutcome::failed) return unexpected(dead, AcquireOutcome::failed);
  if (std::string slow = too_slow(begin, kBound); !slow.empty()) return slow;

  for (testbed::Server* server : tested->servers()) must(server->restart(false));
  tested->settle();
  for (Client* client : {holder.get(), waiter.get()}) {
    const AcquireResult again = try_some_times(*client, bench.key());
    if (!again.lease) return "after a restart: " + unexpected(again, AcquireOutcome::acquired);
    if (client->release(*again.lease) != ReleaseOutcome::released) return "cannot be released";
  }
  return {};
}

std::string frozen_server_is_given_up(const Descriptor& descriptor) {
  const auto tested = own_store();
  Bench bench(descriptor, *tested, with_timeout(descriptor, kTimeout));
  const auto client = bench.client();
  // From within a queue at the server a client cannot tell its silence from waiting.
  const Duration patience = waits_at_the_server(descriptor) ? Duration(kTimeout) : seconds(20);
  AcquireResult result;
  // Some tell the server how long they will wait, if that is not what they told it last, and have
  // not asked for the lock if that gets no answer: a busy machine makes these times differ.
  for (int i = 0; i < 10 && result.outcome != AcquireOutcome::unknown; ++i) {
    // Twice, as the first may have less time left by the end of its preparations. A little longer
    // than the frozen one, which would otherwise tell the server if it started a little sooner.
    bool warm = true;
    for (int j = 0; j < 2 && warm; ++j) {
      const AcquireResult granted = client->acquire(bench.key(), patience + milliseconds(1));
      warm = granted.lease.has_value();
      if (warm) client->release(*granted.lease);
    }
    // The patience may be short for a server that has only just been thawed.
    if (!warm) continue;
    on_all(*tested, &testbed::Server::freeze);
    const TimePoint begin = BootClock::now();
    result = client->acquire(bench.key(), patience);
    // One may be asked after the other.
    std::string slow = too_slow(begin, kBound + (tested->servers().size() - 1) * kTimeout);
    on_all(*tested, &testbed::Server::thaw);
    if (!slow.empty()) return slow;
    if (result.outcome == AcquireOutcome::failed && waits_at_the_server(descriptor)) continue;
    if (result.outcome != AcquireOutcome::unknown) break;
  }
  if (result.outcome != AcquireOutcome::unknown) return unexpected(result, AcquireOutcome::unknown);
  const AcquireResult next = client->try_once(bench.key() + ":next");
  return next.lease ? std::string()
                    : "after the thaw: " + unexpected(next, AcquireOutcome::acquired);
}

tl::expected<Duration, std::string> stopped_call(const Descriptor& descriptor) {
  const auto tested = own_store();
  Bench bench(descriptor, *tested, with_timeout(descriptor, milliseconds(1500)));
  const auto client = bench.client();
  warm_up(*client, bench.key());
  on_all(*tested, &testbed::Server::freeze);
  std::stop_source source;
  AcquireResult result;
  TimePoint end;
  std::thread calling([&] {
    result = client->acquire(bench.key(), seconds(20), kLongTtl, source.get_token());
    end = client->now();
  });
  const bool sent = client->trace().await_command(seconds(5));
  const TimePoint stopped = BootClock::now();
  source.request_stop();
  calling.join();
  on_all(*tested, &testbed::Server::thaw);
  if (!sent) return tl::unexpected(std::string("it sent nothing"));
  const bool fits =
      result.outcome == AcquireOutcome::unknown || result.outcome == AcquireOutcome::abandoned;
  if (!fits) return tl::unexpected(unexpected(result, AcquireOutcome::unknown));
  return end - stopped;
}

/// The time-out is far away: only the stop can end the call.
std::string stop_ends_a_call_to_a_frozen_server(const Descriptor& descriptor) {
  return one_ends_in_time([&] { return stopped_call(descriptor); });
}

}  // namespace

std::vector<Property> failure_properties() {
  return {{"UnreachableServerIsNamed", has_store, unreachable_server_is_named},
          {"DeathOfTheServerIsSurvived", has_store, death_of_the_server_is_survived},
          {"FrozenServerIsGivenUp", has_store, frozen_server_is_given_up},
          {"StopEndsACallToAFrozenServer", has_store, stop_ends_a_call_to_a_frozen_server}};
}

}  // namespace lockbench::test
