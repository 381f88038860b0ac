#include <algorithm>
#include <chrono>

#include "cli/commands/commands.h"
#include "cli/commands/measurement.h"
#include "cli/console/ranks.h"
#include "cli/console/session.h"
#include "loadgen/experiments/capacity_experiment.h"
#include "loadgen/experiments/costs.h"
#include "results/stats/figures.h"
#include "simulate/simulation.h"

// The commands that vary one quantity: capacity, renewal, quorum.

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using deployment::attempt;
using deployment::need;

/// What an experiment needs: servers, and a result that is saved as it grows.
struct Experiment {
  results::Result result;
  const std::string out;
  Session session;
  Console& console;
  std::optional<deployment::Deployment> servers{};
  ResultFile file;

  Experiment(const OutputOptions& output, results::Result begun)
      : result(std::move(begun)),
        out(out_path(output, result)),
        session(output),
        console(session.console()),
        file(out, console) {}

  /// False if a stop came first.
  bool deploy(const LoadOptions& options, std::vector<Selected>& selected, OptionRecord workload) {
    servers = session.deploy(options, selected, result.skipped);
    if (!servers) return false;
    result.environment.servers = servers->facts;
    result.workload = std::move(workload);
    result.interrupted = true;  // until it is over
    return true;
  }
  void keep_step(const std::vector<results::Run>& runs) {
    if (!file.has_time()) return;
    result.runs = runs;
    file.keep(result);
  }
  loadgen::OnStep on_step() {
    return [this](const std::string& line) { console.note(line); };
  }
};

/// The search raises the rate until the objective is missed, so the objective must be one that a
/// higher rate makes harder to keep.
tl::expected<results::Threshold, std::string> parse_objective(const std::string& text) {
  using results::Good;
  auto objective = results::parse_threshold(text);
  if (!objective) return objective;
  const Good good = results::compared_figure(objective->figure).good;
  const bool below = objective->wants_less();
  if ((good == Good::lower && objective->wants_more()) || (good == Good::higher && below)) {
    return tl::unexpected(fmt::format("\"{}\": this objective improves as {} gets worse; use {}",
                                      text, objective->figure, below ? ">" : "<"));
  }
  return objective;
}

/// Plays loads of the strategy for capacity's guess; empty if it cannot be simulated.
loadgen::Simulate simulator_of(const Descriptor& strategy, int replicas, std::stop_token stop) {
  // A second or less each, of at most eleven.
  constexpr std::uint64_t kMostEvents = 300'000;
  if (!simulate::why_not(strategy).empty()) return {};
  return [&strategy, replicas, stop = std::move(stop)](const loadgen::Workload& workload) {
    return simulate::rehearse(
        {.strategy = &strategy, .workload = workload, .redis = {.replicas = replicas}}, kMostEvents,
        stop);
  };
}

/// Measures one strategy after the other. A stop leaves the rest listed as skipped.
void measure_all(loadgen::CapacityPlan plan, int replicas, const std::vector<Selected>& selected,
                 Experiment& experiment, Ending& ending) {
  results::Result& result = experiment.result;
  Session& session = experiment.session;
  Console& console = experiment.console;
  auto& capacities = *result.capacity;
  plan.so_far = [&](const results::Capacity& capacity) {
    capacities.push_back(capacity);
    experiment.file.keep_step(result);
    capacities.pop_back();
  };
  if (const std::string why = loadgen::search_too_short(plan); !why.empty()) console.warn(why);
  for (const Selected& one : selected) {
    const std::string name(one.strategy->name);
    if (session.stopped()) {
      result.skipped.push_back({name, "interrupted"});
      continue;
    }
    plan.strategy = one.strategy;
    plan.simulate = simulator_of(*one.strategy, replicas, session.stop());
    loadgen::CapacityMeasured measured =
        loadgen::measure_capacity(plan, experiment.on_step(), session.stop());
    for (const std::string& line : measured.errors) console.warn("failure: " + line);
    const results::Capacity& capacity = measured.capacity;
    // A control promises no exclusion.
    const bool violated =
        one.strategy->traits.promises_exclusion && capacity.violated.value_or(false);
    if (violated) console.warn("exclusion was broken: " + name);
    ending.errors |= !measured.errors.empty();
    ending.exclusion_broken |= violated;
    add_to(ending, capacity);
    capacities.push_back(std::move(measured.capacity));
    experiment.file.keep(result);
  }
  result.interrupted = ending.interrupted = session.stopped();
  experiment.file.keep(result);
}

int capacity(const CapacityOptions& given) {
  if (given.strategies.empty()) {
    throw UsageError("capacity needs a strategy: lockbench capacity redis-queue --slo EXPR");
  }
  if (given.objective.empty()) {
    throw UsageError("capacity needs an objective: --slo 'acquire.p99<20ms'");
  }
  CapacityOptions options = given;
  if (!given.time) options.time = loadgen::default_search_time(given.workload, given.objective);
  std::vector<Selected> selected = select_for_load(options);
  results::Result begun = begin_result(options.output);
  begun.capacity.emplace();
  Experiment experiment(options.output, std::move(begun));
  auto& [result, out, session, console, servers, file] = experiment;
  Metrics metrics = Metrics::start(options, selected, result.id, console);
  if (!experiment.deploy(options, selected, workload_record(options))) {
    return session.interrupted_early();
  }

  Ending ending{.strict = options.output.strict};
  loadgen::CapacityPlan plan{.run = plan_on(*servers, result.id),
                             .time = *options.time,
                             .objective = options.objective,
                             .planned_rate = options.planned_rate};
  plan.run.workload = options.workload;
  plan.run.watcher = metrics.watcher();
  plan.run.maker = maker_of(out, result, options.metrics);
  measure_all(std::move(plan), options.replicas, selected, experiment, ending);
  const int code = finish(result, options.output, file, ending);
  metrics.linger(console, session.stop());
  return code;
}

struct RenewalOptions : LoadOptions {
  static constexpr std::string_view kCommand = "renewal";
  std::vector<std::uint64_t> held;
  int pairs = 3;

  void declare(OptionList& options) {
    options.add("held", "N", held, whole_number(1, 1'000'000), "locks to hold",
                "1, 10, 100, 1000, 10000, 100000");
    options.add("pairs", "N", pairs, whole_number(1, 1000),
                "pairs of runs: with the held locks and without");
    options.only({"clients", "threads", "duration", "ttl", "redis", "tls", "store-timeout"},
                 [&] { LoadOptions::declare(options); });
    options.without({"resume", "strict"}, [&] { output.declare(options); });
  }
};

int renewal(const RenewalOptions& given) {
  RenewalOptions options = given;
  if (options.held.empty()) options.held = {1, 10, 100, 1'000, 10'000, 100'000};
  // Each client has its own lock, and runs for at least one renewal period, so that each held lock
  // is renewed in the meantime.
  loadgen::Workload& load = options.workload;
  load.key_per_client = true;
  load.duration = std::max(load.duration, RenewalTiming{}.first(load.ttl));
  Experiment experiment(options.output, begin_result(options.output));
  auto& [result, out, session, console, servers, file] = experiment;
  LoadOptions with_holders = options;
  // One for the holder; a private server accepts twice as many connections.
  ++with_holders.workload.clients;
  std::vector<Selected> selected = {{find_strategy("redis-watchdog"), true},
                                    {find_strategy("redis-set-nx-lua"), true}};
  if (!experiment.deploy(with_holders, selected, workload_record(options))) {
    return session.interrupted_early();
  }
  loadgen::RenewalPlan plan{
      .foreground = plan_on(*servers, result.id),
      .held = options.held,
      .pairs = options.pairs,
      .so_far = [&](const std::vector<results::Run>& runs) { experiment.keep_step(runs); }};
  plan.foreground.maker = maker_of(out, result);
  // Ranks know their own cores.
  if (Ranks::joined() == nullptr) {
    load.threads = loadgen::generator_threads(load, options.servers_of("redis").empty());
  }
  plan.foreground.workload = load;
  const auto measured = loadgen::measure_renewal(plan, experiment.on_step(), session.stop());
  result.interrupted = session.stopped();
  result.runs = measured.runs;
  for (const std::string& line : measured.errors) console.warn(line);
  Ending ending{.errors = !measured.errors.empty()};
  for (const results::Run& run : result.runs) {
    ending.errors |= run.renewal && run.renewal->lost > 0;
    ending.exclusion_broken |= run.audit.verdict == results::Verdict::violated;
  }
  return finish(result, options.output, file, ending);
}

struct QuorumOptions : LoadOptions {
  static constexpr std::string_view kCommand = "quorum";
  std::vector<int> node_counts;         ///< none: 1, 3, 5, 7
  std::vector<int> down, frozen, slow;  ///< numbers of nodes, as in loadgen::QuorumPlan
  Duration slow_by = 20ms;

  QuorumOptions() { workload.duration = 1s; }

  void declare(OptionList& options) {
    ValueType<int> node_count = whole_number(1, 15);
    options.add("nodes", "N", node_counts, each_once(node_count), "nodes of the quorum",
                "1, 3, 5, 7");
    options.add("clients", "N", workload.clients, whole_number(1, 1000),
                "clients that contend for one lock, at the points with contention");
    options.add("duration", "D", workload.duration, duration(10ms, 1h),
                "measured time of each point");
    ValueType<int> faulty = whole_number(0, 15);
    options.add("down", "N", down, each_once(faulty),
                "nodes that are down, at points with this fault; 0: no such point",
                "a minority, and one more");
    options.add("frozen", "N", frozen, each_once(faulty), "the same for frozen nodes",
                "a minority");
    options.add("slow", "N", slow, each_once(faulty), "the same for slow nodes", "a minority");
    options.add("slow-by", "D", slow_by, duration(1ms, 1h), "round-trip time added to slow nodes");
    options.only({"client", "clients-per-process", "threads", "ttl", "node-timeout", "replicas",
                  "rtt", "tls", "store-timeout"},
                 [&] { LoadOptions::declare(options); });
    options.without({"resume", "strict"}, [&] { output.declare(options); });
  }
};

/// Independent private nodes, and a primary with replicas, each behind a proxy.
class FaultyNodes : public loadgen::QuorumNodes {
 public:
  /// All proxies add `rtt`, those of slow nodes also `slow`. `servers` outlives it.
  FaultyNodes(const deployment::Deployment& servers, Duration rtt, Duration slow)
      : nodes_(*servers.stores.at("redis")),
        replicated_(*servers.stores.at("redis-replicated")),
        rtt_(rtt),
        slow_(slow) {}

  Endpoints endpoints(const results::Nodes& nodes) override {
    // A proxy costs time even without a delay, so only those with a delay are used.
    const bool far = rtt_ > Duration::zero();
    const auto url = [&](const deployment::PrivateStore& store, std::size_t i, bool by_proxy) {
      const testbed::Server& server = *store.servers().at(i);
      return by_proxy ? server.url_form().on({store.lines().at(i)->port()}) : server.url();
    };
    Endpoints endpoints;
    for (std::size_t i = 0; i < nodes.count; ++i) {
      const bool slow = i >= nodes.count - nodes.slow;
      endpoints["redis"].push_back(url(nodes_, i, far || slow));
    }
    endpoints["redis-replicated"] = {url(replicated_, 0, far)};
    return endpoints;
  }

  tl::expected<void, std::string> inject(const results::Nodes& nodes) override {
    return attempt([&] {
      const auto servers = nodes_.servers();
      // Counts down from the last node; each node gets one fault.
      std::size_t next = nodes.count;
      for (std::uint64_t i = 0; i < nodes.slow; ++i) {
        nodes_.lines().at(--next)->delay(deployment::each_way(rtt_ + slow_));
      }
      for (std::uint64_t i = 0; i < nodes.frozen; ++i) need(servers.at(--next)->freeze());
      for (std::uint64_t i = 0; i < nodes.down; ++i) need(servers.at(--next)->kill_hard());
    });
  }

  tl::expected<void, std::string> heal() override {
    return attempt([&] {
      for (const auto& line : nodes_.lines()) line->heal();
      deployment::each(nodes_.servers(), [](testbed::Server& server) {
        return server.alive() ? server.thaw() : server.restart(false);
      });
      for (const testbed::Server* server : nodes_.servers()) {
        need(deployment::ask_server("redis", server->url(), 3s));
      }
    });
  }

  /// A server that no fault strikes.
  std::string counter_url() const { return replicated_.servers().front()->url(); }

 private:
  deployment::PrivateStore& nodes_;
  deployment::PrivateStore& replicated_;
  const Duration rtt_, slow_;
};

int quorum(const QuorumOptions& given) {
  QuorumOptions options = given;
  if (options.node_counts.empty()) options.node_counts = {1, 3, 5, 7};
  std::ranges::sort(options.node_counts);
  Experiment experiment(options.output, begin_result(options.output));
  auto& [result, out, session, console, servers, file] = experiment;
  const Ranks* const ranks = Ranks::joined();
  if (const std::string far = ranks == nullptr ? "" : ranks->beyond_loopback(); !far.empty()) {
    throw UsageError("{}, and quorum uses no others", far);
  }
  const int most = options.node_counts.back();
  for (const auto& [name, numbers] :
       {std::pair{"down", &options.down}, std::pair{"frozen", &options.frozen},
        std::pair{"slow", &options.slow}}) {
    const auto beyond = std::ranges::find_if(*numbers, [&](int nodes) { return nodes > most; });
    if (beyond == numbers->end()) continue;
    throw UsageError("--{} {}: the largest quorum of --nodes has {}", name, *beyond, most);
  }
  LoadOptions wanted = options;
  wanted.workload.nodes = most;
  wanted.through_proxies = true;
  std::vector<Selected> selected;
  for (const char* const name : {"redis-set-nx-lua", "redlock", "redlock-parallel", "redis-wait"}) {
    selected.push_back({find_strategy(name), true});
  }
  for (const std::string& name : options.strategies) {
    if (find_strategy(name)->traits.nodes <= 1) {
      throw UsageError("--client: {} has no trait `quorum`, which quorum measures", name);
    }
    selected.push_back({find_strategy(name), true});
  }
  if (!experiment.deploy(wanted, selected, workload_record(options))) {
    return session.interrupted_early();
  }
  FaultyNodes nodes(*servers, options.workload.rtt, options.slow_by);
  loadgen::QuorumPlan plan{.run = {.run_id = result.id, .workload = options.workload},
                           .nodes = options.node_counts,
                           .others = options.strategies,
                           .contending = options.workload.clients,
                           .down = options.down,
                           .frozen = options.frozen,
                           .slow = options.slow,
                           .slow_by = options.slow_by};
  loadgen::Workload& load = plan.run.workload;
  load.warmup = std::min<Duration>(200ms, load.duration);
  load.rtt = {};  // the proxies add it
  // Ranks know their own cores.
  if (ranks == nullptr) load.threads = loadgen::generator_threads(load, true);
  plan.so_far = [&](const std::vector<results::Run>& runs) { experiment.keep_step(runs); };
  plan.run.maker = maker_of(out, result);
  plan.run.counter_url = nodes.counter_url();
  const auto measured = loadgen::measure_quorum(plan, nodes, experiment.on_step(), session.stop());
  result.interrupted = session.stopped();
  result.runs = measured.runs;
  for (const std::string& line : measured.errors) console.warn("failure: " + line);
  for (const std::string& point : measured.violated) console.warn("exclusion was broken: " + point);
  return finish(
      result, options.output, file,
      {.exclusion_broken = !measured.violated.empty(), .errors = !measured.errors.empty()});
}

}  // namespace

void CapacityOptions::declare(OptionList& options) {
  usual(options.add("slo", "EXPR", objective, parsed(parse_objective, &results::Threshold::text),
                    "objective to keep, such as 'acquire.p99<20ms'; if several, all must be kept"));
  usual(options.add("clients", "N", workload.clients, whole_number(1, 10'000),
                    "concurrent clients; enough that some are always free to start a section"));
  options.add("duration", "D", workload.duration, duration(10ms, 1h),
              "measured time of each step of the search; extended for a long hold or a low rate");
  usual(options.add("time", "D", time, duration(1s, 168h),
                    "time to search the rates of each strategy", "5m; up to 30m for a long hold"));
  usual(options.add(
      "planned-rate", "R", planned_rate, number(0.001, 10'000'000),
      "planned sections per second, to show the headroom; measured if it may be the limit; exit "
      "99 if it is too high, 5 if that is not decided",
      "none"));
  options.without({"load", "think", "rate", "arrival", "iterations", "shared-share", "repeat",
                   "contended-grants", "hot-set", "trace", "locks-per-section", "lock-order",
                   "deadlock-timeout", "renew-cap", "lock-at-least", "fault", "on-acquire-error",
                   "work-connection"},
                  [&] { LoadOptions::declare(options); });
  options.at("strategies").default_text = "";  // required
  metrics.declare(options);
  options.without({"resume"}, [&] { output.declare(options); });
}

Command capacity_command() {
  return make_command<CapacityOptions>(
      {.task = kMeasure,
       .summary = "Find the highest load that keeps an objective, and what limits it.",
       .example = "lockbench capacity redis-queue --slo 'acquire.p99<20ms' --clients 64",
       .over_ranks = true},
      capacity);
}

Command renewal_command() {
  return make_command<RenewalOptions>(
      {.task = kMeasure,
       .summary = "Measure what lease renewal costs, with 1 to 100,000 held locks.",
       .example = "lockbench renewal --held 1000 --held 10000 --ttl 10s",
       .over_ranks = true},
      renewal);
}

Command quorum_command() {
  return make_command<QuorumOptions>(
      {.task = kMeasure,
       .summary = "Measure what a quorum costs, also with nodes down, frozen or slow.",
       .example = "lockbench quorum --nodes 3 --nodes 5 --clients 16",
       .over_ranks = true},
      quorum);
}

}  // namespace lockbench::cli
