#include "cli/options/load_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/options/value_types.h"
#include "exporter/push_target.h"
#include "strategies/store.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using loadgen::LockOrder;

constexpr Commands kLoads = kRun | kCapacity | kProbe;
constexpr Commands kSaves = kOverview | kRun | kCapacity | kRenewal | kQuorum | kHazards | kMerge;
constexpr int kMaxReplicas = 16;

ValueType<WaitPolicy> wait_policy() {
  const auto parse = [](const std::string& text) -> tl::expected<WaitPolicy, std::string> {
    const auto policy = parse_wait_policy(text);
    if (!policy) return tl::unexpected(policy.error());
    if (auto allowed = check_range(text, policy->max, 0s, 1h); !allowed) {
      return tl::unexpected(allowed.error());
    }
    return *policy;
  };
  return parsed(parse, [](const WaitPolicy& policy) { return to_string(policy); });
}

ValueType<RenewPolicy> renew_policy() {
  using Kind = RenewPolicy::Kind;
  const auto parse = [](const std::string& text) -> tl::expected<RenewPolicy, std::string> {
    if (text == "off") return RenewPolicy{Kind::off};
    if (text == "auto") return RenewPolicy{Kind::automatic};
    const auto period = parse_duration(text);
    if (!period) {
      return tl::unexpected(
          fmt::format("\"{}\" is neither off nor auto nor a duration such as 250ms", text));
    }
    if (auto allowed = check_range(text, *period, 1ms, 24h); !allowed) {
      return tl::unexpected(allowed.error());
    }
    return RenewPolicy{Kind::every, *period};
  };
  const auto text = [](const RenewPolicy& policy) {
    if (policy.kind == Kind::every) return format_duration(policy.period);
    return std::string(policy.kind == Kind::off ? "off" : "auto");
  };
  auto type = parsed(parse, text);
  type.record = [text](const RenewPolicy& policy) -> results::OptionValue {
    if (policy.kind == Kind::every) return seconds(policy.period);
    return text(policy);
  };
  return type;
}

/// `--wait-replicas K` or `--wait-replicas all`, which is no number.
Option wait_replicas_option(std::optional<int>& replicas) {
  Option option{.help =
                    "replicas that must acknowledge a lock of redis-wait; all: as many as "
                    "--replicas; a number is required for those of --redis",
                .default_text = "all"};
  option.type = Option::Type::integer_or_text;
  option.parse = [&replicas](const std::string& text) -> tl::expected<void, std::string> {
    const auto number = parse_whole(text);
    if (text != "all" && (!number || *number < 1 || *number > kMaxReplicas)) {
      return tl::unexpected(
          fmt::format("\"{}\" is neither a whole number from 1 to {} nor all", text, kMaxReplicas));
    }
    replicas.reset();
    if (number) replicas = static_cast<int>(*number);
    return {};
  };
  option.value = [&replicas]() -> results::OptionValue {
    if (!replicas) return std::string("all");
    return std::int64_t{*replicas};
  };
  return option;
}

/// A server's URL, shown without its secrets.
ValueType<std::string> server_url(const StoreKind& kind) {
  const auto parse = [&kind](const std::string& text) -> tl::expected<std::string, std::string> {
    if (!kind.not_built.empty()) {
      return tl::unexpected(fmt::format("this build is without {}", kind.name));
    }
    if (auto shown = kind.display(text); !shown) return tl::unexpected(shown.error());
    return kind.complete == nullptr ? text : kind.complete(text);
  };
  return parsed(parse, [&kind](const std::string& url) { return kind.display(url).value_or("?"); });
}

ValueType<std::string> push_url() {
  const auto parse = [](const std::string& text) -> tl::expected<std::string, std::string> {
    const auto target = exporter::parse_push_target(text);
    if (!target) return tl::unexpected(target.error());
    return text;
  };
  return parsed(parse,
                [](const std::string& url) { return exporter::parse_push_target(url)->display(); });
}

}  // namespace

void declare_files(OptionList& options, std::vector<std::string>& files, std::string help,
                   std::string default_text) {
  options.add({"files", "FILE"}, files, any_text(), std::move(help), std::move(default_text))
      .as_positional()
      .without_commas()
      .not_in_file();
}

void LoadOptions::declare_load(OptionList& options) {
  options
      .add({"strategies", "STRATEGY", kLoads | kOverview}, strategies, any_text(),
           "name or glob, such as redis-fenced or 'redis-*'",
           options.serves(kOverview) ? "a typical one of each family" : "all")
      .as_positional()
      .recorded_if_unset(std::vector<std::string>{"all"});
  options.heading("Load");
  using loadgen::NamedLoad;
  options.add({"load", "NAME,...", kRun}, loads,
              each_once<NamedLoad>(OneOf<NamedLoad>{{"alone", NamedLoad::alone},
                                                    {"demand", NamedLoad::demand},
                                                    {"saturated", NamedLoad::saturated},
                                                    {"reacquire", NamedLoad::reacquire}}),
              "what the clients do, which the other options can change",
              "saturated; demand with --rate");
  const std::string decided_by_load = options.serves(kRun) ? "the load's" : "";
  options.add({"clients", "N", kRun | kRenewal | kDoctor}, workload.clients,
              whole_number(1, 100'000), "concurrent clients", decided_by_load);
  constexpr Commands kAll = kOverview | kLoads | kRenewal | kQuorum;
  options.add({"threads", "N", kAll}, workload.threads, whole_number(1, 1024),
              "threads that several clients share",
              "one for each core that private servers do not need");
  options.add({"stack", "SIZE", kAll}, workload.stack_bytes, byte_size(16 << 10, 16 << 20),
              "stack of each of several clients, such as 128KiB",
              "64KiB, of which only what is used takes memory");
  declare_keys(options);
  options.add(
      {"hold", "D", kLoads}, workload.hold, distribution(),
      "time in the critical section: 2ms, exp(2ms), uniform(1ms,3ms), lognormal(P50,P99), or "
      "quantiles:FILE with lines such as \"0.99 12ms\"",
      decided_by_load);
  options.add({"think", "D", kRun}, workload.think, distribution(),
              "time between two sections of a client, written like --hold");
  options.add({"rate", "R", kRun}, workload.rate, number(0.001, 10'000'000),
              "open loop: sections per second over all clients", "closed loop");
  options.add({"arrival", "NAME", kRun}, workload.arrival,
              OneOf<loadgen::Arrival>{{"constant", loadgen::Arrival::constant},
                                      {"poisson", loadgen::Arrival::poisson}},
              "arrival process of the open loop");
  options.add({"duration", "D", kOverview | kRun | kRenewal}, workload.duration,
              duration(1ms, 168h), "measured time of each run, after the warm-up");
  options.add(
      {"iterations", "N", kRun}, workload.iterations, whole_number(1, 1'000'000'000'000),
      "stop after N measured sections over all clients, or after --duration (1h unless set)",
      "no limit");
  options.add({"warmup", "D", kOverview | kRun | kCapacity}, workload.warmup, duration(0s, 1h),
              "load before the measured time, not in the figures");
  options.add({"shared-share", "F", kRun}, workload.shared_share, number(0, 1),
              "share of the locks that are taken in shared mode");
  options.add({"resource", "NAME", kRun | kCapacity | kDoctor}, workload.resource,
              OneOf<loadgen::Resource>{{"memory", loadgen::Resource::memory},
                                       {"redis", loadgen::Resource::redis},
                                       {"redis-fenced", loadgen::Resource::redis_fenced}},
              "where the protected counter lives");
  options.add({"contended-grants", "N", kOverview | kRun}, workload.contended_grants,
              whole_number(1, 1'000'000'000),
              "the verdict \"exclusive\" needs N grants for which clients competed");
  options.add({"repeat", "N", kOverview | kRun}, workload.repeat, whole_number(1, 1000),
              "runs of each strategy, interleaved with the others'");
  options.add({"seed", "N", kRun | kCapacity}, workload.seed, whole_number(0, INT64_MAX),
              "seed of arrivals, keys, hold and think times");
}

void LoadOptions::declare_transactions(OptionList& options) {
  options.heading("Several locks in a section");
  options.add({"locks-per-section", "N", kRun}, workload.locks_per_section, whole_number(1, 64),
              "different locks that each section takes, as a transaction does");
  options.add({"lock-order", "NAME", kRun}, workload.lock_order,
              OneOf<LockOrder>{{"sorted", LockOrder::sorted},
                               {"drawn", LockOrder::drawn},
                               {"all-or-nothing", LockOrder::all_or_nothing}},
              "how a section takes several locks: sorted by key; as drawn, which can deadlock; or "
              "with one attempt at each, giving all back if one is taken");
  options.add(
      {"deadlock-timeout", "D", kRun}, workload.deadlock_timeout, duration(1ms, 1h),
      "with --lock-order drawn: the longest wait of a section that holds a lock, which then "
      "gives all back and begins again");
}

void LoadOptions::declare_locks(OptionList& options) {
  StrategyOptions& strategy = workload.strategy;
  options.heading("Locks");
  options.add({"ttl", "D", kLoads | kRenewal | kQuorum}, workload.ttl, duration(1ms, 24h),
              "time to live of a lock");
  options.add({"acquire-timeout", "D", kRun | kCapacity}, workload.acquire_timeout,
              duration(0s, 24h), "time after which a client gives up; 0s: after one attempt");
  options.add({"wait", "P", kLoads}, strategy.wait, wait_policy(),
              "waiting policy: poll:D, backoff:MIN..MAX, random:MIN..MAX or notify, where the "
              "strategy has a choice",
              "the strategy's own");
  options.add({"renew", "P", kLoads}, strategy.renew, renew_policy(),
              "renewal of held leases: off, auto (every third of the TTL) or an interval such as "
              "250ms, where the strategy has a choice",
              "the strategy's own");
  options.add({"renew-cap", "D", kRun}, strategy.renew_cap, duration(1ms, 168h),
              "renew a lease for at most D after its grant", "no limit");
  options.add({"lock-delay", "D", kRun | kCapacity}, strategy.lock_delay, duration(0s, 1h),
              "chubby: time after a holder's failure before the lock is granted again");
  options.add_flag({"prefer-writers", "", kRun | kCapacity}, strategy.prefer_writers,
                   "redis-read-write: new readers wait while a writer waits");
  options.heading("Several nodes");
  options.add({"nodes", "N", kRun | kCapacity}, workload.nodes, whole_number(1, 15),
              "private nodes of Redlock; --redis, given several times, replaces them");
  options.add({"node-timeout", "D", kLoads | kQuorum}, strategy.node_timeout, duration(100us, 1h),
              "time to wait for one node of Redlock", "50ms, or TTL/20 if that is less");
  options.add({"replicas", "N", kRun | kCapacity | kQuorum}, replicas,
              whole_number(0, kMaxReplicas), "replicas of the private Redis of redis-wait");
  options.add_custom({"wait-replicas", "K", kLoads}, wait_replicas_option(wait_replicas));
  options.add({"wait-timeout", "D", kLoads}, strategy.wait_timeout, duration(1ms, 1h),
              "time within which the replicas of redis-wait must acknowledge");
}

void declare_servers(OptionList& options, ServerUrls& servers) {
  for (const StoreKind* kind : store_kinds()) {
    std::vector<std::string>& urls = servers[std::string(kind->name)];
    const bool redis = kind->name == "redis";
    // memcached can neither list nor watch its keys.
    const bool watchable = kind->name != "memcached";
    const ValueType<std::string> type = server_url(*kind);
    Option& option = options.add({kind->name, kind->value_name,
                                  (redis ? kRenewal : 0) | (watchable ? kWatch : 0) | kOverview |
                                      kLoads | kDoctor | kChoose | kClean},
                                 urls, type, std::string(kind->help));
    option.without_commas().as_secret();
    if (kind->repeatable) continue;
    option.repeatable = false;
    option.value = [&urls, type]() -> results::OptionValue {
      if (urls.empty()) return nullptr;
      return type.text(urls.front());
    };
  }
}

void LoadOptions::declare_stores(OptionList& options) {
  options.heading("Faults");
  options.add({"fault", "FAULT@TIME[+D]", kRun}, faults,
              parsed(loadgen::parse_fault, &loadgen::Fault::to_string),
              fmt::format("inject a fault into the private servers, TIME after the warm-up, and "
                          "heal it after D or at the end, such as store-kill@1s+500ms; one at a "
                          "time; faults: {}; with node-kill:N, partition:SHARE, delay:D",
                          fmt::join(loadgen::kFaults, ", ")));
  options.heading("Stores");
  declare_servers(options, servers);
  options
      .add({"counter-redis", "URL", kRun | kCapacity | kDoctor}, counter_redis,
           server_url(*find_store_kind("redis")),
           "server of the counter of --resource redis and redis-fenced",
           "the first --redis, or a private server")
      .as_secret();
  options.add({"rtt", "D", kRun | kCapacity | kQuorum}, workload.rtt, duration(0s, 1h),
              "round-trip time added between clients and private servers");
  options.add_flag({"tls", "", kRun | kCapacity | kRenewal | kQuorum}, tls,
                   "private servers speak TLS, and clients verify them");
  options.add({"store-timeout", "D", kOverview | kLoads | kRenewal | kQuorum | kDoctor},
              workload.strategy.command_timeout, duration(1ms, 1h),
              "time to wait for one answer of a store");
}

void LoadOptions::declare(OptionList& options) {
  declare_load(options);
  declare_transactions(options);
  declare_locks(options);
  declare_stores(options);
  metrics.declare(options);
  ranks.declare(options);
  output.declare(options);
}

void MetricsOptions::declare(OptionList& options) {
  options.heading("Metrics");
  options.add({"metrics-listen", "ADDR:PORT", kLoads | kWatch}, listen,
              parsed(exporter::parse_listen_address, &exporter::ListenAddress::to_string),
              "serve /metrics for Prometheus; :PORT listens on the loopback only, port 0 takes a "
              "free one");
  options.add({"linger", "D", kRun | kCapacity}, linger, duration(0s, 168h),
              "time for which /metrics is still served after the run");
  options
      .add({"push", "URL", kRun | kCapacity}, push, push_url(),
           "push the final metrics to a Pushgateway: http[s]://[user[:password]@]host[:port]"
           "[/path]")
      .as_secret();
}

void OutputOptions::declare(OptionList& options) {
  options.heading("Results");
  options.add({"out", "FILE", kSaves}, out, path(),
              "result file; -: stdout, which then shows nothing else", "results/runs/<id>.json");
  options.add_flag({"resume", "", kOverview | kRun}, resume,
                   "keep the runs that --out FILE has already, and make the others");
  options.add({"report", "FILE", kSaves | kWatch}, report, path(),
              "also write the result as one HTML page, which needs no network");
  options.add({"format", "NAME", kSaves | kCompare | kShow | kWatch}, format,
              OneOf<Format>{{"table", Format::table},
                            {"json", Format::json},
                            {"csv", Format::csv},
                            {"markdown", Format::markdown}},
              "what stdout shows");
  options.add({"columns", "NAME,...", kSaves | kCompare | kShow | kWatch}, columns, any_text(),
              "columns of the table or CSV, by their CSV names; all: every column, however wide",
              "those that fit");
  options.add_flag({"quiet", "", kSaves | kProbe | kReport | kCompare | kWatch}, quiet,
                   "no progress and no notes on stderr");
  options.add(
      {"events", "TO", (kSaves & ~kMerge) | kProbe | kWatch}, events, any_text(),
      "also tell progress, notes, warnings and what was saved as lines of JSON to a file, a "
      "descriptor such as 3, or -: stdout, which then shows nothing else");
  options.add_flag({"strict", "", kRun | kCapacity}, strict, "exit 4 if a run is invalid");
  declare_config(options, config);
}

void OutputOptions::declare_config(OptionList& options, std::string& config) {
  options
      .add({"config", "FILE", (kSaves & ~kMerge) | kProbe | kChoose | kClean | kWatch}, config,
           path(),
           "TOML file with these options as keys, such as clients = 32; the command line wins")
      .not_in_file();
}

void RunOptions::declare(OptionList& options) {
  LoadOptions::declare(options);
  options.add({"threshold", "EXPR"}, thresholds,
              parsed(results::parse_threshold, &results::Threshold::text),
              "exit 99 if a run misses this, such as 'acquire.p99<5ms'");
  options.add_flag({"allow-no-grants", ""}, allow_no_grants,
                   "exit 0, not 2, if a run granted nothing");
  options.add({"hdr", "DIR"}, hdr, path(),
              "also write HdrHistogram files of each run: percentiles in µs (.hgrm)");
}

std::vector<loadgen::Workload> LoadOptions::points() const {
  std::vector<loadgen::Workload> all;
  for (const loadgen::NamedLoad load : loads) {
    for (loadgen::Workload& point : loadgen::points_of(load, workload, decided)) {
      all.push_back(std::move(point));
    }
  }
  return all;
}

OptionRecord run_record(const LoadOptions& values) {
  RunOptions run;
  static_cast<LoadOptions&>(run) = values;
  return options_of(run).record();
}

std::vector<std::string> LoadOptions::servers_of(std::string_view store) const {
  const auto urls = servers.find(store);
  return urls == servers.end() ? std::vector<std::string>() : urls->second;
}

void LoadOptions::check_several_locks(const OptionList& options) const {
  if (workload.locks_per_section > 1 && workload.key_per_client) {
    throw UsageError(
        "--locks-per-section requires --keys N: with --keys per-client there is one each");
  }
  if (workload.locks_per_section > workload.keys) {
    throw UsageError("--locks-per-section {0} requires --keys {0} or more",
                     workload.locks_per_section);
  }
  if (options.given("lock-order") && !workload.has_transactions()) {
    throw UsageError("--lock-order requires --locks-per-section of 2 or more, or --trace");
  }
  const bool can_deadlock = workload.has_transactions() && workload.lock_order == LockOrder::drawn;
  if (options.given("deadlock-timeout") && !can_deadlock) {
    throw UsageError("--deadlock-timeout requires --lock-order drawn");
  }
}

void LoadOptions::complete(const OptionList& options) {
  if (options.given("arrival") && !workload.rate) throw UsageError("--arrival requires --rate");
  complete_ranks(options);
  workload.strategy.wait_replicas = wait_replicas;
  // How many replicas belong to the user's server, it cannot tell: some may be away.
  const bool own = servers_of("redis").empty();
  if (!wait_replicas && own && replicas > 0) workload.strategy.wait_replicas = replicas;
  if (counter_redis && workload.resource == loadgen::Resource::memory) {
    throw UsageError("--counter-redis requires --resource redis or redis-fenced");
  }
  complete_keys(options);
  check_several_locks(options);
  for (const auto& [store, urls] : servers) {
    if (urls.empty()) continue;
    if (workload.rtt > Duration::zero()) {
      throw UsageError("--rtt cannot be combined with --{}: it delays private servers only", store);
    }
    if (!tls) continue;
    throw UsageError(
        "--tls cannot be combined with --{}: it is for private servers; the URL says how to reach "
        "yours",
        store);
  }
  if (tls && counter_redis) throw UsageError("--tls cannot be combined with --counter-redis");
  if (metrics.linger > Duration::zero() && !metrics.listen) {
    throw UsageError("--linger requires --metrics-listen");
  }
  if (workload.rtt >= workload.strategy.command_timeout) {
    throw UsageError("--rtt must be shorter than --store-timeout ({})",
                     format_duration(workload.strategy.command_timeout));
  }
}

void RunOptions::complete(const OptionList& options) {
  LoadOptions::complete(options);
  const bool ends_with_trace = workload.trace && !trace_repeat;
  if ((workload.iterations || ends_with_trace) && !options.given("duration")) {
    workload.duration = kMaxDurationOfIterations;
  }
  decided = {.clients = options.given("clients") || ranks.clients_per_rank,
             .hold = options.given("hold"),
             .rate = options.given("rate"),
             .rtt = options.given("rtt")};
  if (loads.empty()) {
    loads = {workload.rate ? loadgen::NamedLoad::demand : loadgen::NamedLoad::saturated};
  }
  const std::vector<loadgen::Workload> all = points();
  for (const loadgen::Workload& point : all) {
    if (faults.empty() || point.rtt == workload.rtt) continue;
    throw UsageError("--fault cannot be combined with --load alone: give --rtt");
  }
  if (all.size() == 1) workload = all.front();
  for (const loadgen::Fault& fault : faults) {
    using loadgen::FaultKind;
    const bool on_lines = fault.kind == FaultKind::partition || fault.kind == FaultKind::delay ||
                          fault.kind == FaultKind::failover;
    if (ranks.rtts.empty() || !on_lines) continue;
    throw UsageError(
        "--fault: {} cannot be combined with --rtt-of-rank: it does not strike the lines of such "
        "ranks",
        fault.to_string());
  }
  faults = must(loadgen::timetable(std::move(faults), workload.duration), "--fault");
}

}  // namespace lockbench::cli
