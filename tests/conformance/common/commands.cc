#include <algorithm>
#include <array>
#include <boost/algorithm/string/split.hpp>
#include <boost/regex.hpp>
#include <set>
#include <span>

#include "strategies/redis/scripts.h"
#include "tests/conformance/common/bench.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

/// Differs from the warm-up's: if sessions have TTLs, another session is begun.
constexpr seconds kOtherTtl = kLongTtl / 2;

/// A declared command as the Env names it (scripts by name) and as on the wire.
struct Declared {
  std::string name, wire;
  Words words{};  ///< on the wire, with placeholders for keys, tokens and numbers
};

const redis::Script& script_named(const std::string& name) {
  for (const redis::Script* script : redis::scripts::kAll) {
    if (script->name == name) return *script;
  }
  throw Broken("no script has the name " + name);
}

std::vector<Declared> parse(std::span<const std::string_view> commands) {
  std::vector<Declared> parsed;
  for (const std::string_view command : commands) {
    Declared one;
    boost::split(one.words, command, [](char c) { return c == ' '; });
    one.name = one.wire = one.words.front();
    if (one.wire == "EVALSHA") {
      one.name = one.words.at(1);
      one.words[1] = script_named(one.name).sha1;
      const auto behind_keys =
          std::find_if(one.words.begin() + 2, one.words.end(),
                       [](const std::string& word) { return !word.starts_with("key"); });
      const auto keys = behind_keys - one.words.begin() - 2;
      one.words.insert(one.words.begin() + 2, std::to_string(keys));
    }
    parsed.push_back(std::move(one));
  }
  return parsed;
}

/// What may stand for a word of a declared command. A placeholder for a token is whatever the
/// strategy takes for one; all other words are literal.
bool fits(const std::string& declared, const std::string& sent, const std::string& key) {
  static const std::map<std::string, boost::regex> placeholders{
      {"token", boost::regex("[^ ]+")},
      {"owner", boost::regex("[^ ]+")},
      {"record", boost::regex("[^ ]*")},
      {"permits", boost::regex("[0-9]+")},
      {"ttl", boost::regex("[0-9]+")},
      {"window", boost::regex("[0-9]+")},
      {"now+ttl", boost::regex("[0-9]{13}")},
      {"milliseconds", boost::regex("[0-9]+")},
      {"replicas", boost::regex("[0-9]+")},
      {"timeout", boost::regex("[0-9]+")},
      {"seconds", boost::regex("[0-9]+([.][0-9]{3})?")}};
  if (declared == "key" || declared.starts_with("key:")) {
    std::string expected = key + declared.substr(3);
    if (!expected.ends_with(":token")) return sent == expected;
    expected.resize(expected.size() - std::string_view("token").size());
    return sent.starts_with(expected) && sent.size() > expected.size();
  }
  if (const auto known = placeholders.find(declared); known != placeholders.end()) {
    return boost::regex_match(sent, known->second);
  }
  Words choices;
  boost::split(choices, declared, [](char c) { return c == '|'; });
  return std::find(choices.begin(), choices.end(), sent) != choices.end();
}

/// Byte for byte, but for keys, tokens and numbers.
bool fits(const Declared& declared, const SeenCommand& sent, const std::string& key) {
  return std::equal(declared.words.begin(), declared.words.end(), sent.words.begin(),
                    sent.words.end(),
                    [&](const auto& one, const auto& other) { return fits(one, other, key); });
}

/// Throws Broken unless each of them is one that is declared, word for word.
void expect_declared(const std::vector<Declared>& declared, const std::vector<SeenCommand>& sent,
                     const std::string& key, const std::string& when) {
  for (const SeenCommand& command : sent) {
    if (command.words.front() == "AUTH") continue;
    const bool known = std::any_of(declared.begin(), declared.end(),
                                   [&](const Declared& one) { return fits(one, command, key); });
    if (!known) {
      throw Broken(fmt::format("{}the server saw \"{}\", which is not declared", when,
                               fmt::join(command.words, " ")));
    }
  }
}

Words names_of(const std::vector<SeenCommand>& commands) {
  Words names;
  for (const SeenCommand& command : commands) {
    if (command.words.front() != "AUTH") names.push_back(command.words.front());
  }
  return names;
}

/// Commands of a new connection are not part of a strategy.
std::vector<TracedCommand> without_logins(std::vector<TracedCommand> commands) {
  constexpr std::array<std::string_view, 7> kFirst{
      "AUTH", "Authenticate", "CREATE SCHEMA", "USE", "CREATE DATABASE", "CONNECT", "STREAM.INFO"};
  std::erase_if(commands, [&](const TracedCommand& command) {
    return std::ranges::find(kFirst, command.name) != kFirst.end();
  });
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
  Watch(Client& client, std::string key, std::set<std::string>& seen, bool all_end)
      : client_(client),
        key_(std::move(key)),
        seen_(seen),
        all_end_(all_end),
        monitors_(monitor_all()) {
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
    if (monitor == nullptr) return;
    const std::vector<SeenCommand> arrived = monitor->take_whole();
    expect_same(wire, names_of(arrived), when);
    expect_declared(declared, arrived, key_, when);
  }

  Client& client_;
  const std::string key_;
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
    const std::vector<SeenCommand> at_one = monitor->take_whole();
    expect_declared(declared, at_one, bench.key(), "waiting: ");
    const Words names = names_of(at_one);
    arrived.insert(arrived.end(), names.begin(), names.end());
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
  Watch winning(*holder, bench.key(), acquiring, all_end);
  const Lease held = granted(holder->acquire(bench.key(), patience(), kOtherTtl));
  winning.check(to_acquire, "acquire: ");

  Watch losing(*loser, bench.key(), acquiring, all_end);
  loser->try_once(bench.key(), kOtherTtl);
  losing.check(to_acquire, "a refused attempt: ");
  // A client that considers the lock expired may need more commands.
  loser->faults().skew_wall_clock(kOtherTtl + seconds(1));
  loser->try_once(bench.key(), kOtherTtl);
  losing.check(to_acquire, "a late attempt: ");
  loser->faults().skew_wall_clock({});
  check_waiting(bench, *loser, to_acquire, acquiring);
  expect_all_seen(to_acquire, acquiring);

  Watch leaving(*holder, bench.key(), releasing, all_end);
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
  const std::vector<SeenCommand> sent = monitor->take_whole();
  const Words arrived = names_of(sent);
  // The scheduler's, and the release's.
  std::vector<Declared> all = parse(descriptor.release_commands);
  for (Declared one : declared) {
    all.push_back(one);
    // Not by observation: there each renewal is a call of its own.
    if (one.wire == "EVALSHA" && !descriptor.traits.observed) {
      one.words[0] = one.wire = "EVAL";
      one.words[1] = script_named(one.name).source;
      all.push_back(one);
    }
    if (std::count(arrived.begin(), arrived.end(), one.wire) == 0) {
      return fmt::format("the server saw {}, not {}", list(arrived), one.wire);
    }
  }
  expect_declared(all, sent, bench.key(), "renewing: ");
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
