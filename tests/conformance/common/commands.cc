#include <algorithm>
#include <set>
#include <span>

#include "tests/conformance/common/bench.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

/// Differs from the warm-up's: if sessions have TTLs, another session is begun.
constexpr seconds kOtherTtl = kLongTtl / 2;

/// A declared command as the Env names it (scripts by name) and as on the wire.
struct Declared {
  std::string name, wire;
};

std::vector<Declared> parse(std::span<const std::string_view> commands) {
  std::vector<Declared> parsed;
  for (const std::string_view command : commands) {
    const std::size_t space = std::min(command.find(' '), command.size());
    const std::string first(command.substr(0, space));
    if (first != "EVALSHA") {
      parsed.push_back({first, first});
      continue;
    }
    const std::string_view rest = command.substr(space + 1);
    parsed.push_back({std::string(rest.substr(0, rest.find(' '))), first});
  }
  return parsed;
}

/// Commands of a new connection are not part of a strategy.
std::vector<TracedCommand> without_logins(std::vector<TracedCommand> commands) {
  std::erase_if(commands, [](const TracedCommand& command) { return command.name == "AUTH"; });
  return commands;
}

std::string list(const Words& words) { return fmt::format("[{}]", fmt::join(words, " ")); }

void expect_same(const Words& reported, const Words& arrived, const std::string& when) {
  if (reported == arrived) return;
  throw Broken(
      fmt::format("{}reported {}, but the server saw {}", when, list(reported), list(arrived)));
}

/// A monitor for each server, if the store has monitors.
std::vector<std::unique_ptr<RedisMonitor>> monitor_all() {
  std::vector<std::unique_ptr<RedisMonitor>> monitors;
  for (std::size_t server = 0; server < shared_endpoints().size(); ++server) {
    monitors.push_back(shared_store().monitor(server));
  }
  return monitors;
}

/// Watches one client from both sides: what it reports, and what arrives at each server. Adds the
/// names of what it saw to `seen`.
class Watch {
 public:
  Watch(Client& client, std::set<std::string>& seen, bool all_end)
      : client_(client), seen_(seen), all_end_(all_end), monitors_(monitor_all()) {
    begin();
  }

  void begin() {
    client_.trace().take();
    for (const auto& monitor : monitors_) {
      if (monitor) monitor->take();
    }
  }

  /// Throws Broken unless the commands since begin() are the declared ones, in this order.
  void check(const std::vector<Declared>& declared, const std::string& when) {
    const std::vector<TracedCommand> all = client_.trace().take();
    if (all_end_ && client_.trace().under_way() != 0) {
      throw Broken(when + "a command was begun that never ended");
    }
    const std::vector<std::string> endpoints = shared_endpoints();
    for (std::size_t server = 0; server < endpoints.size(); ++server) {
      Words reported;
      for (const TracedCommand& command : all) {
        if (command.endpoint == endpoints[server]) reported.push_back(command.name);
      }
      check_one(declared, reported, monitors_[server].get(), when);
    }
  }

 private:
  void check_one(const std::vector<Declared>& declared, const Words& reported,
                 RedisMonitor* monitor, const std::string& when) {
    Words wire;
    auto expected = declared.begin();
    for (const std::string& name : reported) {
      expected = std::find_if(expected, declared.end(),
                              [&](const Declared& one) { return one.name == name; });
      if (expected == declared.end()) {
        throw Broken(fmt::format("{}sent {}: {} is not declared, or not at this place", when,
                                 list(reported), name));
      }
      seen_.insert(name);
      wire.push_back(expected++->wire);
    }
    if (monitor != nullptr) expect_same(wire, monitor->take(), when);
  }

  Client& client_;
  std::set<std::string>& seen_;
  const bool all_end_;
  std::vector<std::unique_ptr<RedisMonitor>> monitors_;
};

bool declares(const std::vector<Declared>& declared, std::string_view name) {
  return std::any_of(declared.begin(), declared.end(),
                     [&](const Declared& one) { return one.name == name; });
}

/// A waiting client repeats the declared commands, and its process's subscription sends some of
/// them: in any order, but no others.
void check_waiting(Bench& bench, Client& waiter, const std::vector<Declared>& declared,
                   std::set<std::string>& seen) {
  const auto monitors = monitor_all();
  waiter.trace().take();
  waiter.acquire(bench.key(), seconds(1), kOtherTtl);
  for (const char* name : {"SUBSCRIBE", "UNSUBSCRIBE"}) {
    if (declares(declared, name) && !bench.worlds().await(name, 1, patience())) {
      throw Broken(fmt::format("waiting: {} is declared, but was never sent", name));
    }
  }
  Words reported = names_of(waiter.trace().take());
  for (TracedCommand& command : without_logins(bench.worlds().take())) {
    reported.push_back(std::move(command.name));
  }
  Words wire;
  for (const std::string& name : reported) {
    const auto known = std::find_if(declared.begin(), declared.end(),
                                    [&](const Declared& one) { return one.name == name; });
    if (known == declared.end()) throw Broken("waiting: " + name + " is not declared");
    seen.insert(name);
    wire.push_back(known->wire);
  }
  Words arrived;
  for (const auto& monitor : monitors) {
    if (!monitor) return;
    const Words at_one = monitor->take();
    arrived.insert(arrived.end(), at_one.begin(), at_one.end());
  }
  std::sort(wire.begin(), wire.end());
  std::sort(arrived.begin(), arrived.end());
  expect_same(wire, arrived, "waiting: ");
}

void expect_all_seen(const std::vector<Declared>& declared, const std::set<std::string>& seen) {
  for (const Declared& command : declared) {
    if (!seen.contains(command.name)) {
      throw Broken(command.name + " is declared, but was never sent");
    }
  }
}

std::string commands_are_the_declared_ones(const Descriptor& descriptor) {
  const auto to_acquire = parse(descriptor.acquire_commands);
  const auto to_release = parse(descriptor.release_commands);
  Bench bench(descriptor, unrenewed());
  const auto holder = bench.client(), loser = bench.client();
  for (Client* client : {holder.get(), loser.get()}) warm_up(*client, bench.key());
  std::set<std::string> acquiring, releasing;
  // Late answers of a quorum do not count.
  const bool all_end = !is_quorum(descriptor);
  Watch winning(*holder, acquiring, all_end);
  const Lease held = granted(holder->acquire(bench.key(), patience(), kOtherTtl));
  winning.check(to_acquire, "acquire: ");

  Watch losing(*loser, acquiring, all_end);
  loser->try_once(bench.key(), kOtherTtl);
  losing.check(to_acquire, "a refused attempt: ");
  // A client that considers the lock expired may need more commands.
  loser->faults().skew_wall_clock(kOtherTtl + seconds(1));
  loser->try_once(bench.key(), kOtherTtl);
  losing.check(to_acquire, "a late attempt: ");
  loser->faults().skew_wall_clock({});
  check_waiting(bench, *loser, to_acquire, acquiring);
  expect_all_seen(to_acquire, acquiring);

  Watch leaving(*holder, releasing, all_end);
  holder->release(held);
  leaving.check(to_release, "release: ");
  expect_all_seen(to_release, releasing);
  return {};
}

bool is_keyless(const TracedCommand& command) {
  return command.name == "MULTI" || command.name == "EXEC" || command.name == "WAIT";
}

/// On the scheduler's own connection. The first script of a batch is sent by EVAL, so that the
/// server knows it.
std::string timer_sends_the_declared_commands(const Descriptor& descriptor) {
  const auto declared = parse(descriptor.renew_commands);
  if (declared.empty()) return "no command is declared to renew";
  const std::string& name = declared.front().name;
  HeldBench bench(kLongTtl, descriptor, renewed_every(milliseconds(20)));
  const auto monitor = shared_store().monitor();
  // At least one complete batch.
  const int two = 2 * static_cast<int>(declared.size());
  if (!bench.worlds().await_any(bench.worlds().ended() + two, patience()) ||
      !bench.worlds().await(name, 2, patience())) {
    return name + " is declared to renew, but was not sent";
  }
  bench.holder->give_back(bench.held);
  for (const TracedCommand& command : without_logins(bench.worlds().take())) {
    const bool known = std::any_of(declared.begin(), declared.end(),
                                   [&](const auto& one) { return one.name == command.name; });
    if (!known) return command.name + " renews, but is not declared";
    if (!is_keyless(command) && command.key != bench.key()) {
      return fmt::format("{} has the key {}", command.name, command.key);
    }
  }
  if (!monitor) return {};
  const Words arrived = monitor->take();
  for (const auto& one : declared) {
    const std::string wire = one.wire == "EVALSHA" ? "EVAL" : one.wire;
    if (std::count(arrived.begin(), arrived.end(), wire) == 0) {
      return fmt::format("the server saw {}, not {}", list(arrived), wire);
    }
  }
  return {};
}

std::string every_command_is_labelled(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  client->trace().take();
  warm_up(*client, bench.key());
  const auto commands = client->trace().take();
  if (commands.empty()) return "no command was reported";
  const auto endpoints = shared_endpoints();
  for (const TracedCommand& command : commands) {
    if (command.store != descriptor.backend) return "store is " + command.store;
    if (std::find(endpoints.begin(), endpoints.end(), command.endpoint) == endpoints.end()) {
      return "endpoint is " + command.endpoint;
    }
    if (!is_keyless(command) && command.key != bench.key()) {
      return fmt::format("{} has the key \"{}\"", command.name, command.key);
    }
  }
  return {};
}

bool renews_by_itself(const Descriptor& descriptor) { return descriptor.traits.renews.has_value(); }

}  // namespace

std::vector<Property> command_properties() {
  return {{"CommandsAreTheDeclaredOnes", has_store, commands_are_the_declared_ones},
          {"TimerSendsTheDeclaredCommands", renews_by_itself, timer_sends_the_declared_commands},
          {"EveryCommandIsLabelled", has_store, every_command_is_labelled}};
}

}  // namespace lockbench::test
