#include "cli/options/load_options.h"

#include <algorithm>

#include "exporter/http_endpoint.h"
#include "strategies/programs/program.h"
#include "strategies/store.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using loadgen::LockOrder;

constexpr int kMaxReplicas = 16;

/// Drawn anew for each section: 2ms, exp(2ms).
ValueType<loadgen::DurationDistribution> distribution() {
  using loadgen::DurationDistribution;
  return {.parse =
              [](const std::string& text) {
                return DurationDistribution::parse(text).map_error([&](const std::string& error) {
                  const bool quoted = error.find(text) != std::string::npos;
                  return quoted ? error : fmt::format("\"{}\": {}", text, error);
                });
              },
          .text = [](const DurationDistribution& value) { return value.to_string(); },
          .record = [](const DurationDistribution& value) -> results::OptionValue {
            const std::string text = value.to_string();
            if (const auto constant = parse_duration(text)) return seconds(*constant);
            return text;
          }};
}

ValueType<WaitPolicy> wait_policy() {
  const auto parse = [](const std::string& text) {
    return parse_wait_policy(text).and_then([&](const WaitPolicy& policy) {
      return check_range(text, policy.max, 0s, 1h).map([&] { return policy; });
    });
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
    return check_range(text, *period, 1ms, 24h).map([&] {
      return RenewPolicy{Kind::every, *period};
    });
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

/// A server's URL, shown without its secrets.
ValueType<std::string> server_url(const StoreKind& kind) {
  const auto parse = [&kind](const std::string& text) -> tl::expected<std::string, std::string> {
    if (!kind.not_built.empty()) {
      return tl::unexpected(fmt::format("this build is without {}", kind.name));
    }
    return kind.display(text).map(
        [&](const auto&) { return kind.complete == nullptr ? text : kind.complete(text); });
  };
  return parsed(parse, [&kind](const std::string& url) { return kind.display(url).value_or("?"); });
}

ValueType<loadgen::Trace> trace_file() {
  const auto parse = [](const std::string& text) {
    return path().parse(text).and_then(
        [](const std::string& file) { return loadgen::Trace::read(file); });
  };
  return parsed(parse, &loadgen::Trace::path);
}

/// Takes one list of values, and records it as such, but a single value as a number.
template <class T, class Single>
void make_sweep(Option& option, const std::vector<T>& values, const Single& single) {
  option.repeatable = false;
  option.value = [&values, single]() -> results::OptionValue {
    if (values.size() > 1) {
      return results::each_of(values, [](const T& value) { return fmt::format("{}", value); });
    }
    const std::optional<T> one = single();
    if (!one) return nullptr;
    if constexpr (std::is_integral_v<T>) return std::int64_t{*one};
    return static_cast<double>(*one);
  };
}

}  // namespace

void declare_files(OptionList& options, std::vector<std::string>& files, std::string help,
                   std::string default_text) {
  Option& option =
      options.add("files", "FILE", files, any_text(), std::move(help), std::move(default_text));
  option.positional = true;
  option.comma_separated = option.in_file = false;
}

void declare_clients(OptionList& options, std::vector<std::string>& clients) {
  const auto parse = [](const std::string& text) {
    return program::parse_client(text).map([&](const auto&) { return text; });
  };
  options
      .add("client", "[NAME=]COMMAND", clients, parsed(parse),
           "a program that locks with a library of your choice, such as 'node my_lock.mjs', in "
           "place of a strategy or beside some (docs/your-lock.md); repeatable")
      .comma_separated = false;
}

void take_clients(const std::vector<std::string>& clients, const ServerUrls& servers,
                  std::vector<std::string>& strategies) {
  if (clients.empty()) return;
  if (rank_count() > 1) {
    throw UsageError("--client cannot be combined with {} ranks, only with one process",
                     rank_count());
  }
  for (const std::string& text : clients) {
    auto client =
        program::parse_client(text)
            .and_then([&](program::Client one) { return program::ask(std::move(one), servers); })
            .and_then(program::add);
    const std::string name(must(std::move(client), "--client")->name);
    if (std::ranges::count(strategies, name) == 0) strategies.push_back(name);
  }
}

void LoadOptions::declare_keys(OptionList& options) {
  Option& keys =
      usual(options.add("keys", "N", workload.keys, number_or_word(10'000'000, "per-client"),
                        "distinct locks; per-client: one for each client, so no contention"));
  keys.value = [this]() -> results::OptionValue {
    if (workload.key_per_client) return std::string("per-client");
    return std::int64_t{workload.keys};
  };
  options.add("key-skew", "S", workload.key_skew, number(0, 10),
              "Zipf exponent of the choice among the keys; 0: uniform");
  options.add("hot-set", "SET", workload.hot_set,
              parsed(loadgen::HotSet::parse, &loadgen::HotSet::to_string),
              "send a share of the load to a few hot keys: share=50%,keys=2500,move=10s; the hot "
              "keys change every `move`, or never without it",
              "none");
  options.add("trace", "FILE", workload.trace, trace_file(),
              "replay the lock requests of a trace: lines of transaction,task,type,lock,mode; the "
              "warm-up uses up the first lines; the run ends with the trace or after --duration "
              "(1h unless set)",
              "none");
}

void LoadOptions::declare_load(OptionList& options) {
  Option& names = options.add("strategies", "STRATEGY", strategies, any_text(),
                              "name or glob, such as redis-fenced or 'redis-*'", "all");
  names.positional = true;
  names.value_if_unset = std::vector<std::string>{"all"};
  declare_clients(options, programs);
  options.add("clients-per-process", "N", workload.strategy.clients_per_process,
              whole_number(1, 100'000), "clients that one process of --client carries");
  options.heading("Load");
  using loadgen::NamedLoad;
  options.add("load", "NAME,...", loads,
              each_once<NamedLoad>(one_of<NamedLoad>({{"alone", NamedLoad::alone},
                                                      {"demand", NamedLoad::demand},
                                                      {"saturated", NamedLoad::saturated},
                                                      {"reacquire", NamedLoad::reacquire}})),
              "named loads; the other options override their values",
              "saturated; demand with --rate");
  usual(options.add("clients", "N", workload.clients, whole_number(1, 100'000),
                    "concurrent clients"));
  options.add("threads", "N", workload.threads, whole_number(1, 1024),
              "threads that run the clients", "one for each core that private servers do not need");
  declare_keys(options);
  usual(options.add(
      "hold", "D", workload.hold, distribution(),
      "time in the critical section: 2ms, exp(2ms), uniform(1ms,3ms), lognormal(P50,P99), or "
      "quantiles:FILE with lines such as \"0.99 12ms\""));
  options.add("think", "D", workload.think, distribution(),
              "time between two sections of a client, written like --hold");
  usual(options.add("rate", "R", workload.rate, number(0.001, 10'000'000),
                    "open loop: sections per second over all clients", "closed loop"));
  options.add("arrival", "NAME", workload.arrival,
              one_of<loadgen::Arrival>({{"constant", loadgen::Arrival::constant},
                                        {"poisson", loadgen::Arrival::poisson}}),
              "arrival process of the open loop");
  usual(options.add("duration", "D", workload.duration, duration(1ms, 168h),
                    "measured time of each run, after the warm-up",
                    "3s, and up to 10s until the contended grants are reached"));
  options.add(
      "iterations", "N", workload.iterations, whole_number(1, 1'000'000'000'000),
      "stop after N measured sections over all clients, or after --duration (1h unless set)",
      "no limit");
  options.add("warmup", "D", workload.warmup, duration(0s, 1h),
              "load before the measured time; not in the figures");
  options.add("shared-share", "F", workload.shared_share, number(0, 1),
              "share of the locks taken in shared mode, 0 to 1");
  options.add("resource", "NAME", workload.resource,
              one_of<loadgen::Resource>({{"memory", loadgen::Resource::memory},
                                         {"redis", loadgen::Resource::redis},
                                         {"redis-fenced", loadgen::Resource::redis_fenced}}),
              "where the protected counter lives");
  options.add("contended-grants", "N", workload.contended_grants, whole_number(1, 1'000'000'000),
              "contended grants required for the verdict \"exclusive\"");
  usual(options.add("repeat", "N", workload.repeat, whole_number(1, 1000),
                    "runs of each strategy, interleaved with those of the others"));
  options.add("seed", "N", workload.seed, whole_number(0, INT64_MAX),
              "seed of arrivals, keys, hold and think times");
}

void LoadOptions::declare_transactions(OptionList& options) {
  options.heading("Several locks in a section");
  options.add("locks-per-section", "N", workload.locks_per_section, whole_number(1, 64),
              "distinct locks that each section takes, like a transaction");
  options.add("lock-order", "NAME", workload.lock_order,
              one_of<LockOrder>({{"sorted", LockOrder::sorted},
                                 {"drawn", LockOrder::drawn},
                                 {"all-or-nothing", LockOrder::all_or_nothing}}),
              "how a section takes several locks: in the order of their keys; in the order drawn, "
              "which can deadlock; or with one attempt at each, releasing all if one is taken");
  options.add(
      "deadlock-timeout", "D", workload.deadlock_timeout, duration(1ms, 1h),
      "with --lock-order drawn: longest wait for a lock while holding another; then the section "
      "releases all and starts again");
}

void LoadOptions::declare_locks(OptionList& options) {
  StrategyOptions& strategy = workload.strategy;
  options.heading("Locks");
  usual(options.add("ttl", "D", workload.ttl, duration(1ms, 24h), "time to live of a lock"));
  options.add("acquire-timeout", "D", workload.acquire_timeout, duration(0s, 24h),
              "time after which a client gives up; 0s: after one attempt");
  options.add("on-acquire-error", "NAME", workload.proceeds_on_error,
              one_of<bool>({{"skip", false}, {"proceed", true}}),
              "what the application does with a section whose acquisition failed: skip it, or "
              "proceed without the lock, as if nothing had happened");
  options.add_flag("work-connection", workload.work_connection,
                   "with --pool: the work in a section takes one more of its connections");
  options.add(
      "wait", "P", strategy.wait, wait_policy(),
      "waiting policy: poll:D, backoff:MIN..MAX, random:MIN..MAX or notify, if the strategy "
      "supports it",
      "the strategy's own");
  options.add(
      "renew", "P", strategy.renew, renew_policy(),
      "renewal of held leases: off, auto (every TTL/3) or an interval such as 250ms, if the "
      "strategy supports it",
      "the strategy's own");
  options.add("renew-cap", "D", strategy.renew_cap, duration(1ms, 168h),
              "renew a lease for at most D after its grant", "no limit");
  options.add_flag(
      "renew-retry", strategy.renew_retry,
      "retry a failed renewal after 5 ms, doubling; without this, at its next turn, as "
      "Redisson does");
  options.add("renew-deadline", "D", strategy.renew_deadline, duration(1ms, 24h),
              "leases by observation (*-observed-lease): the holder counts its lease as lost D "
              "after its latest renewal",
              "two thirds of --ttl");
  options.add("permits", "N", strategy.permits, whole_number(1, 10'000),
              "clients that a semaphore (*-semaphore) lets in at once; with more than one, the "
              "audit counts overlaps of more than N, and does not judge lost updates");
  options.add("lock-at-least", "D", strategy.lock_at_least, duration(0s, 24h),
              "postgres-lease: a release leaves the lock taken until D after its grant, like "
              "ShedLock's lockAtLeastFor");
  options.add("lock-delay", "D", strategy.lock_delay, duration(0s, 1h),
              "chubby: time after a holder's failure before the lock is granted again");
  options.add_flag("prefer-writers", strategy.prefer_writers,
                   "redis-read-write: new readers wait while a writer waits");
  options.heading("Several nodes");
  options.add("nodes", "N", workload.nodes, whole_number(1, 15),
              "private nodes of Redlock; repeat --redis to use your own instead");
  options.add("node-timeout", "D", strategy.node_timeout, duration(100us, 1h),
              "time to wait for one node of Redlock", "50ms, or TTL/20 if that is less");
  options.add("replicas", "N", replicas, whole_number(0, kMaxReplicas),
              "replicas of the private Redis of redis-wait");
  options.add("wait-replicas", "K", wait_replicas, number_or_word(kMaxReplicas, "all"),
              "replicas that must acknowledge a lock of redis-wait; all: as many as --replicas; "
              "with --redis, a number is required");
  options.add("wait-timeout", "D", strategy.wait_timeout, duration(1ms, 1h),
              "time within which the replicas of redis-wait must acknowledge");
  options.add_flag("redis-cluster", redis_cluster,
                   "the private Redis is a cluster: three primaries with a replica each");
}

void declare_servers(OptionList& options, ServerUrls& servers) {
  for (const StoreKind* kind : store_kinds()) {
    std::vector<std::string>& urls = servers[std::string(kind->name)];
    const ValueType<std::string> type = server_url(*kind);
    Option& option =
        usual(options.add(kind->name, kind->value_name, urls, type, std::string(kind->help)));
    option.comma_separated = false;
    option.secret = true;
    // Other commands than this build's may need the variable.
    option.in_environment = kind->not_built.empty();
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
  options.add("fault", "FAULT@TIME[+D]", faults,
              parsed(loadgen::parse_fault, &loadgen::Fault::to_string),
              fmt::format("inject a fault into the private servers, or into a client that holds a "
                          "lock, TIME after the warm-up, and heal it after D or at the end, such "
                          "as store-kill@1s+500ms or client-pause:2s@1s; faults must not overlap; "
                          "faults: {}; some take a value: node-kill:N, node-freeze:N, "
                          "partition:SHARE, delay:D, client-pause:D",
                          fmt::join(loadgen::kFaults, ", ")));
  options.heading("Stores");
  declare_servers(options, servers);
  options
      .add("counter-redis", "URL", counter_redis, server_url(*find_store_kind("redis")),
           "server for the counter of --resource redis or redis-fenced",
           "the first --redis, or a private server")
      .secret = true;
  options.add("rtt", "D", workload.rtt, duration(0s, 1h),
              "round-trip time added between clients and private servers");
  options.add_flag("tls", tls, "private servers speak TLS, and clients verify them");
  options.add("store-timeout", "D", workload.strategy.command_timeout, duration(1ms, 1h),
              "time to wait for one answer from a store");
}

void LoadOptions::declare(OptionList& options) {
  declare_load(options);
  declare_transactions(options);
  declare_locks(options);
  declare_stores(options);
}

void MetricsOptions::declare(OptionList& options) {
  options.heading("Metrics");
  options
      .add("metrics-listen", "ADDR:PORT", listen,
           parsed(exporter::parse_listen_address, &exporter::ListenAddress::to_string),
           "serve /metrics for Prometheus; :PORT listens on the loopback only, port 0 picks a "
           "free port")
      .effect = Effect::output;
  options
      .add("linger", "D", linger, duration(0s, 168h),
           "how long to keep serving /metrics after the run")
      .effect = Effect::output;
}

void OutputOptions::declare(OptionList& options) {
  options.heading("Results");
  const auto output = [&](Option& option) -> Option& {
    option.effect = Effect::output;
    return option;
  };
  output(usual(options.add("out", "FILE", out, path(),
                           "result file; -: write the result to stdout and print nothing else",
                           "results/runs/<id>.json")));
  output(
      options.add_flag("resume", resume, "keep the runs in --out FILE, and make the missing ones"));
  output(usual(options.add("report", "FILE", report, path(),
                           "also write the result as one self-contained HTML page")));
  std::vector<std::pair<std::string_view, Format>> formats{{"table", Format::table},
                                                           {"json", Format::json},
                                                           {"csv", Format::csv},
                                                           {"markdown", Format::markdown}};
  if (judges) formats.emplace_back("junit", Format::junit);
  output(options.add("format", "NAME", format, one_of(formats), "format on stdout"));
  output(options.add(
      "columns", "NAME,...", columns, any_text(),
      "columns of the table or CSV, by their CSV names; all: every column, however wide",
      "those that fit"));
  output(options.add_flag("quiet", quiet, "no progress and no notes on stderr"));
  output(options.add(
      "events", "TO", events, any_text(),
      "also write progress, notes, warnings and the names of saved files as lines of JSON to a "
      "file, a descriptor such as 3, or - for stdout, which then shows nothing else"));
  options.add_flag("strict", strict, "exit 4 if a run is invalid").effect = Effect::command;
  output(options.add(
             "config", "FILE", config, path(),
             "TOML file with these options as keys, such as clients = 32; the command line wins"))
      .in_file = false;
}

void RunOptions::declare_sweep(OptionList& options) {
  options.heading("Load");
  make_sweep(
      usual(options.add("clients", "N,...", client_counts, each_once<int>(whole_number(1, 100'000)),
                        "concurrent clients; several numbers: a sweep", "the load's")),
      client_counts, [this] { return workload.clients; });
  make_sweep(
      usual(options.add("rate", "R,...", rates, each_once(number(0.001, 10'000'000)),
                        "open loop: sections per second over all clients; several rates: a sweep",
                        "closed loop")),
      rates, [this] { return workload.rate; });
  make_sweep(options.add("pool", "K,...", pools, each_once<int>(whole_number(1, 100'000)),
                         "connections that all clients share, waiters included; several numbers: a "
                         "sweep",
                         "each client has its own"),
             pools, [this] { return workload.pool; });
}

void RunOptions::declare(OptionList& options) {
  declare_sweep(options);
  LoadOptions::declare(options);
  options.at("hold").default_text = "the load's";
  metrics.declare(options);
  output.declare(options);
  usual(options.add("threshold", "EXPR", thresholds,
                    parsed(results::parse_threshold, &results::Threshold::text),
                    "exit 99 if a run misses this, 5 if it is not decided, such as "
                    "'acquire.p99<5ms'"))
      .effect = Effect::command;
  options.add_flag("allow-no-grants", allow_no_grants, "exit 0, not 2, if a run granted nothing")
      .effect = Effect::command;
  options
      .add("hdr", "DIR", hdr, path(),
           "also write HdrHistogram percentiles of each run, in µs, to DIR (.hgrm)")
      .effect = Effect::output;
  declare_history(options, history);
}

void declare_history(OptionList& options, std::string& history) {
  const auto parse = [](const std::string& text) {
    return history::form_of(text).map([&](history::Form) { return text; });
  };
  options
      .add("history", "FILE", history, parsed(parse),
           "also write each operation on a lock: .edn for Jepsen's tools, .jsonl for Porcupine; "
           "lockbench check judges it")
      .effect = Effect::output;
}

OptionRecord run_record(const LoadOptions& values) {
  RunOptions run;
  static_cast<LoadOptions&>(run) = values;
  return options_of(run).record();
}

}  // namespace lockbench::cli
