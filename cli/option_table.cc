#include <algorithm>
#include <stdexcept>

#include "cli/option.h"
#include "cli/option_types.h"
#include "strategies/redis/endpoint.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;
using Set = tl::expected<void, std::string>;

constexpr Range<Duration> kUpToAnHour{0s, 1h};
constexpr Range<Duration> kUpToADay{0s, 24h};
constexpr int kMostReplicas = 16;

Option strategies_option() {
  Option option{.name = "strategies", .value_name = "STRATEGY"};
  option.help = "a name or a glob, such as 'redis-*' (all)";
  option.repeatable = true;
  option.positional = true;
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    options.strategies.push_back(text);
    return {};
  };
  option.get = [](const RunOptions& options) {
    return options.strategies.empty() ? std::vector<std::string>{"all"} : options.strategies;
  };
  return option;
}

Option keys_option() {
  Option option{.name = "keys", .value_name = "N", .type = Option::Type::integer_or_text};
  option.help = "distinct locks; per-client: each client its own, no contention (1)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    constexpr int kMostKeys = 10'000'000;
    Workload& workload = options.workload;
    workload.key_per_client = text == "per-client";
    if (workload.key_per_client) return {};
    const auto keys = read_number<int>(text);
    if (!keys || *keys < 1 || *keys > kMostKeys) {
      return tl::unexpected(fmt::format(
          "\"{}\" is neither a whole number from 1 to {} nor per-client", text, kMostKeys));
    }
    workload.keys = *keys;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (options.workload.key_per_client) return std::string("per-client");
    return std::int64_t{options.workload.keys};
  };
  return option;
}

Option wait_option() {
  Option option{.name = "wait", .value_name = "P"};
  option.help =
      "how a client waits, where the strategy can: poll:D, backoff:MIN..MAX, random:MIN..MAX "
      "or notify (its own)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    const auto policy = parse_wait_policy(text);
    if (!policy) return tl::unexpected(policy.error());
    if (auto allowed = check_range(text, policy->max, kUpToAnHour); !allowed) return allowed;
    options.workload.strategy.wait = *policy;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    const auto& wait = options.workload.strategy.wait;
    if (!wait) return nullptr;
    return to_string(*wait);
  };
  return option;
}

Option renew_option() {
  Option option{.name = "renew", .value_name = "P"};
  option.help =
      "renewal of held leases, where the strategy can: off, auto (every third of the TTL) or an "
      "interval (its own)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    auto& renew = options.workload.strategy.renew;
    if (text == "off" || text == "auto") {
      renew = RenewPolicy{text == "off" ? RenewPolicy::Kind::off : RenewPolicy::Kind::automatic};
      return {};
    }
    const auto period = parse_duration(text);
    if (!period) {
      return tl::unexpected(
          fmt::format("\"{}\" is neither off nor auto nor a duration such as 250ms", text));
    }
    if (auto allowed = check_range(text, *period, {1ms, 24h}); !allowed) return allowed;
    renew = RenewPolicy{RenewPolicy::Kind::every, *period};
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    const auto& renew = options.workload.strategy.renew;
    if (!renew) return nullptr;
    if (renew->kind == RenewPolicy::Kind::every) return seconds(renew->period);
    return std::string(renew->kind == RenewPolicy::Kind::off ? "off" : "auto");
  };
  return option;
}

Option renew_cap_option() {
  Option option{.name = "renew-cap", .value_name = "D"};
  option.help = "the longest that renewal may prolong one lease, from its grant (no bound)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    const auto cap = parse_duration(text);
    if (!cap) return tl::unexpected(cap.error());
    if (auto allowed = check_range(text, *cap, {1ms, 168h}); !allowed) return allowed;
    options.workload.strategy.renew_cap = *cap;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    const auto& cap = options.workload.strategy.renew_cap;
    if (!cap) return nullptr;
    return seconds(*cap);
  };
  return option;
}

Option node_timeout_option() {
  Option option{.name = "node-timeout", .value_name = "D"};
  option.help =
      "how long one Redlock node is waited for (50ms, or a twentieth of the TTL if that is less)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    const auto timeout = parse_duration(text);
    if (!timeout) return tl::unexpected(timeout.error());
    if (auto allowed = check_range(text, *timeout, {100us, 1h}); !allowed) return allowed;
    options.workload.strategy.node_timeout = *timeout;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    const auto& timeout = options.workload.strategy.node_timeout;
    if (!timeout) return nullptr;
    return seconds(*timeout);
  };
  return option;
}

// Only ever shown without its secrets.
std::string display(const std::string& url) {
  const auto endpoint = redis::parse_endpoint(url);
  if (!endpoint) return "?";
  if (endpoint->database == 0) return endpoint->display();
  return fmt::format("{}{}{}", endpoint->display(),
                     endpoint->path.empty() ? "/" : "?db=", endpoint->database);
}

Option redis_option() {
  Option option{.name = "redis", .value_name = "URL", .repeatable = true};
  option.help =
      "use this Redis instead of a private one: redis://[[user]:password@]host[:port][/db] or "
      "unix://[[user]:password@]/path; repeatable: Redlock's nodes, the first is for all others";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    if (auto endpoint = redis::parse_endpoint(text); !endpoint) {
      return tl::unexpected(endpoint.error());
    }
    options.redis.push_back(text);
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (options.redis.empty()) return nullptr;
    std::vector<std::string> endpoints;
    for (const std::string& url : options.redis) endpoints.push_back(display(url));
    return endpoints;
  };
  return option;
}

Option counter_redis_option() {
  Option option{.name = "counter-redis", .value_name = "URL"};
  option.help =
      "where the counter of --resource redis and redis-fenced lives (--redis, or a private server)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    if (auto endpoint = redis::parse_endpoint(text); !endpoint) {
      return tl::unexpected(endpoint.error());
    }
    options.counter_redis = text;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (!options.counter_redis) return nullptr;
    return display(*options.counter_redis);
  };
  return option;
}

Option threshold_option() {
  Option option{.name = "threshold", .value_name = "EXPR", .repeatable = true};
  option.help = "a figure that must be kept, or the exit code is 99: acquire.p99<5ms; repeatable";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    auto threshold = results::parse_threshold(text);
    if (!threshold) return tl::unexpected(threshold.error());
    options.thresholds.push_back(std::move(*threshold));
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (options.thresholds.empty()) return nullptr;
    std::vector<std::string> texts;
    for (const results::Threshold& threshold : options.thresholds) texts.push_back(threshold.text);
    return texts;
  };
  return option;
}

Option wait_replicas_option() {
  Option option{.name = "wait-replicas", .value_name = "K", .type = Option::Type::integer_or_text};
  option.help = "replicas that must acknowledge a lock of redis-wait; all: those there are (all)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    std::optional<int>& wanted = options.workload.strategy.wait_replicas;
    wanted.reset();
    if (text == "all") return {};
    const auto replicas = read_number<int>(text);
    if (!replicas || *replicas < 1 || *replicas > kMostReplicas) {
      return tl::unexpected(fmt::format("\"{}\" is neither a whole number from 1 to {} nor all",
                                        text, kMostReplicas));
    }
    wanted = replicas;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    const auto& wanted = options.workload.strategy.wait_replicas;
    if (!wanted) return std::string("all");
    return std::int64_t{*wanted};
  };
  return option;
}

/// What waits for replicas, and how.
std::vector<Option> replication_options() {
  return {
      number_option(
          "replicas", "N", "replicas of the private Redis that redis-wait locks on",
          Range<int>{0, kMostReplicas}, [](auto& o) -> auto& { return o.replicas; }),
      wait_replicas_option(),
      duration_option(
          "wait-timeout", "within which they must acknowledge", {1ms, 1h},
          [](auto& o) -> auto& { return o.workload.strategy.wait_timeout; }),
  };
}

std::vector<Option> load_options() {
  return {
      number_option(
          "clients", "N", "concurrent clients", Range<int>{1, 100'000},
          [](auto& o) -> auto& { return o.workload.clients; }),
      keys_option(),
      number_option(
          "key-skew", "S", "Zipf exponent over the keys", Range<double>{0, 10},
          [](auto& o) -> auto& { return o.workload.key_skew; }),
      distribution_option(
          "hold", "time inside the section: 2ms, exp(2ms), uniform(1ms,3ms)",
          [](auto& o) -> auto& { return o.workload.hold; }),
      distribution_option(
          "think", "time between a client's sections, likewise",
          [](auto& o) -> auto& { return o.workload.think; }),
      number_option(
          "rate", "R", "open loop: sections per second over all clients (closed loop)",
          Range<double>{0.001, 10'000'000}, [](auto& o) -> auto& { return o.workload.rate; }),
      choice_option<Arrival>(
          "arrival", "spacing of the open loop",
          {{"constant", Arrival::constant}, {"poisson", Arrival::poisson}},
          [](auto& o) -> auto& { return o.workload.arrival; }),
      duration_option(
          "duration", "how long to measure each run", {1ms, 168h},
          [](auto& o) -> auto& { return o.workload.duration; }),
      number_option(
          "iterations", "N",
          "sections to measure over all clients, for at most --duration, or 1h without one",
          Range<std::uint64_t>{1, 1'000'000'000'000},
          [](auto& o) -> auto& { return o.workload.iterations; }),
      duration_option(
          "warmup", "load before it, left out of the figures", kUpToAnHour,
          [](auto& o) -> auto& { return o.workload.warmup; }),
      duration_option(
          "ttl", "the lock's time to live", {1ms, 24h},
          [](auto& o) -> auto& { return o.workload.ttl; }),
      duration_option(
          "acquire-timeout", "when a client gives up; 0s: after one attempt", kUpToADay,
          [](auto& o) -> auto& { return o.workload.acquire_timeout; }),
      wait_option(),
      renew_option(),
      renew_cap_option(),
      number_option(
          "nodes", "N", "Redlock's private nodes, unless --redis names them", Range<int>{1, 15},
          [](auto& o) -> auto& { return o.workload.nodes; }),
      node_timeout_option(),
      number_option(
          "shared-share", "F", "share of the sections in shared mode, where a strategy has one",
          Range<double>{0, 1}, [](auto& o) -> auto& { return o.workload.shared_share; }),
      duration_option(
          "lock-delay", "chubby: how long nobody is granted the lock after a failure", {0s, 1h},
          [](auto& o) -> auto& { return o.workload.strategy.lock_delay; }),
      choice_option<Resource>(
          "resource", "where the protected counter lives",
          {{"memory", Resource::memory},
           {"redis", Resource::redis},
           {"redis-fenced", Resource::redis_fenced}},
          [](auto& o) -> auto& { return o.workload.resource; }),
      number_option(
          "repeat", "N", "runs of each strategy, interleaved", Range<int>{1, 1000},
          [](auto& o) -> auto& { return o.workload.repeat; }),
      number_option(
          "seed", "N", "of arrivals, keys, hold and think times",
          Range<std::uint64_t>{0, INT64_MAX}, [](auto& o) -> auto& { return o.workload.seed; }),
  };
}

std::vector<Option> deployment_and_output_options() {
  Option config = path_option(
      "config", "a TOML file with these options as keys",
      [](auto& o) -> auto& { return o.config; });
  config.in_file = false;
  Option hdr = path_option(
      "hdr", "a directory for HdrHistogram's files of each run: .hgrm in µs, .hlog",
      [](auto& o) -> auto& { return o.hdr; });
  hdr.value_name = "DIR";
  return {
      redis_option(),
      counter_redis_option(),
      duration_option(
          "rtt", "round-trip time added between clients and local stores", kUpToAnHour,
          [](auto& o) -> auto& { return o.workload.rtt; }),
      duration_option(
          "store-timeout", "how long one answer of a store may take", {1ms, 1h},
          [](auto& o) -> auto& { return o.workload.strategy.command_timeout; }),
      threshold_option(),
      path_option(
          "out", "where the result file goes (results/runs/<id>.json)",
          [](auto& o) -> auto& { return o.out; }),
      hdr,
      choice_option<Format>(
          "format", "what stdout shows",
          {{"table", Format::table},
           {"json", Format::json},
           {"csv", Format::csv},
           {"markdown", Format::markdown}},
          [](auto& o) -> auto& { return o.format; }),
      flag_option(
          "quiet", "no progress and no notes on stderr", [](auto& o) -> auto& { return o.quiet; }),
      flag_option(
          "strict", "exit 4 if a run is invalid", [](auto& o) -> auto& { return o.strict; }),
      config,
  };
}

}  // namespace

std::vector<Option> run_options() {
  std::vector<Option> options = {strategies_option()};
  for (auto part : {load_options(), replication_options(), server_options(), metrics_options(),
                    deployment_and_output_options()}) {
    std::move(part.begin(), part.end(), std::back_inserter(options));
  }
  return options;
}

std::vector<Option> some_run_options(std::initializer_list<std::string_view> names) {
  std::vector<Option> options = run_options();
  std::erase_if(options, [&](const Option& option) {
    return std::find(names.begin(), names.end(), option.name) == names.end();
  });
  if (options.size() != names.size()) throw std::logic_error("no such option in the table");
  return options;
}

std::map<std::string, results::OptionValue> workload_record(const RunOptions& options) {
  std::map<std::string, results::OptionValue> record;
  for (const Option& option : run_options()) {
    std::string key(option.name);
    std::replace(key.begin(), key.end(), '-', '_');
    record.emplace(std::move(key), option.get(options));
  }
  return record;
}

}  // namespace lockbench
