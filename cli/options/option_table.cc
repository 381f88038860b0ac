#include <algorithm>
#include <stdexcept>

#include "cli/options/option.h"
#include "cli/options/option_types.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using Set = tl::expected<void, std::string>;

constexpr Range<Duration> kUpToAnHour{0s, 1h};
constexpr Range<Duration> kUpToADay{0s, 24h};

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
    loadgen::Workload& workload = options.workload;
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
      choice_option<loadgen::Arrival>(
          "arrival", "spacing of the open loop",
          {{"constant", loadgen::Arrival::constant}, {"poisson", loadgen::Arrival::poisson}},
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
      number_option(
          "shared-share", "F", "share of the sections in shared mode, where a strategy has one",
          Range<double>{0, 1}, [](auto& o) -> auto& { return o.workload.shared_share; }),
      duration_option(
          "lock-delay", "chubby: how long nobody is granted the lock after a failure", {0s, 1h},
          [](auto& o) -> auto& { return o.workload.strategy.lock_delay; }),
      choice_option<loadgen::Resource>(
          "resource", "where the protected counter lives",
          {{"memory", loadgen::Resource::memory},
           {"redis", loadgen::Resource::redis},
           {"redis-fenced", loadgen::Resource::redis_fenced}},
          [](auto& o) -> auto& { return o.workload.resource; }),
      number_option(
          "repeat", "N", "runs of each strategy, interleaved", Range<int>{1, 1000},
          [](auto& o) -> auto& { return o.workload.repeat; }),
      number_option(
          "seed", "N", "of arrivals, keys, hold and think times",
          Range<std::uint64_t>{0, INT64_MAX}, [](auto& o) -> auto& { return o.workload.seed; }),
  };
}

/// The way to the stores.
std::vector<Option> network_options() {
  return {
      duration_option(
          "rtt", "round-trip time added between clients and local stores", kUpToAnHour,
          [](auto& o) -> auto& { return o.workload.rtt; }),
      duration_option(
          "store-timeout", "how long one answer of a store may take", {1ms, 1h},
          [](auto& o) -> auto& { return o.workload.strategy.command_timeout; }),
  };
}

std::vector<Option> output_options() {
  Option config = path_option(
      "config", "a TOML file with these options as keys",
      [](auto& o) -> auto& { return o.config; });
  config.in_file = false;
  Option hdr = path_option(
      "hdr", "a directory for HdrHistogram's files of each run: .hgrm in µs, .hlog",
      [](auto& o) -> auto& { return o.hdr; });
  hdr.value_name = "DIR";
  return {
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
  const auto add = [&](std::string_view group, std::vector<Option> part) {
    for (Option& option : part) option.group = group;
    std::move(part.begin(), part.end(), std::back_inserter(options));
  };
  add("Load", load_options());
  add("Renewal", renewing_options());
  add("Several nodes", replication_options());
  add("Faults", fault_options());
  add("Stores", server_options());
  add("Stores", {counter_redis_option()});
  add("Stores", network_options());
  add("Metrics", metrics_options());
  add("Results", output_options());
  add("Results", report_options());
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

}  // namespace lockbench::cli
