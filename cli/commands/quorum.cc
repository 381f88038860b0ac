#include <algorithm>
#include <chrono>

#include "cli/commands/commands.h"
#include "cli/console/ranks.h"
#include "cli/console/session.h"
#include "loadgen/experiments/quorum_experiment.h"
#include "loadgen/run/runner.h"
#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using deployment::attempt;
using deployment::need;

struct QuorumOptions : LoadOptions {
  static constexpr std::string_view kCommand = "quorum";
  std::vector<int> node_counts;  ///< none: 1, 3, 5, 7
  Duration slow = 20ms;

  QuorumOptions() { workload.duration = 1s; }

  void declare(OptionList& options) {
    ValueType<int> node_count = whole_number(1, 15);
    options.add("nodes", "N", node_counts, each_once(node_count), "nodes of the quorum",
                "1, 3, 5, 7");
    options.add("clients", "N", workload.clients, whole_number(1, 1000),
                "clients that contend for one lock, at the points with contention");
    options.add("duration", "D", workload.duration, duration(10ms, 1h),
                "measured time of each point");
    options.add("slow", "D", slow, duration(1ms, 1h), "round-trip time added to slow nodes");
    options.only({"threads", "ttl", "node-timeout", "replicas", "rtt", "tls", "store-timeout"},
                 [&] { LoadOptions::declare(options); });
    options.without({"resume", "strict"}, [&] { output.declare(options); });
  }
};

/// Independent private nodes, and a primary with replicas, each behind a proxy.
class FaultyNodes : public loadgen::QuorumNodes {
 public:
  /// `rtt`: what the proxies add; `slow`: what slow nodes take longer. `servers` outlives it.
  FaultyNodes(const deployment::Deployment& servers, Duration rtt, Duration slow)
      : nodes_(*servers.stores.at("redis")),
        replicated_(*servers.stores.at("redis-replicated")),
        rtt_(rtt),
        slow_(slow) {}

  Endpoints endpoints(const results::Nodes& nodes) override {
    // A proxy costs time even where it adds no delay: only those are used that are to add some.
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
      // From the last node on, each with one fault.
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

loadgen::QuorumPlan plan_of(const QuorumOptions& options, const std::string& run_id) {
  loadgen::QuorumPlan plan{.run = {},
                           .nodes = options.node_counts,
                           .contending = options.workload.clients,
                           .slow = options.slow};
  plan.run.run_id = run_id;
  loadgen::Workload& workload = plan.run.workload;
  workload = options.workload;
  workload.warmup = std::min<Duration>(200ms, options.workload.duration);
  workload.rtt = {};  // the proxies add it
  // Ranks know their own cores.
  if (Ranks::joined() == nullptr) workload.threads = loadgen::generator_threads(workload, true);
  return plan;
}

int quorum(const QuorumOptions& given) {
  QuorumOptions options = given;
  if (options.node_counts.empty()) options.node_counts = {1, 3, 5, 7};
  std::sort(options.node_counts.begin(), options.node_counts.end());
  results::Result result = begin_result(options.output);
  const std::string out = out_path(options.output, result);

  Session session(options.output);
  Console& console = session.console();
  const Ranks* const ranks = Ranks::joined();
  if (const std::string far = ranks == nullptr ? "" : ranks->beyond_loopback(); !far.empty()) {
    throw UsageError("{}, and quorum has no others", far);
  }
  LoadOptions wanted = options;
  wanted.workload.nodes = options.node_counts.back();
  wanted.through_proxies = true;
  std::vector<Selected> selected;
  for (const char* const name : {"redis-set-nx-lua", "redlock", "redlock-parallel", "redis-wait"}) {
    selected.push_back({find_strategy(name), true});
  }
  const auto servers = session.deploy(wanted, selected, result.skipped);
  if (!servers) return session.interrupted_early();

  result.environment.servers = servers->facts;
  result.workload = workload_record(options);
  result.interrupted = true;  // until it is over
  ResultFile file(out, console);
  FaultyNodes nodes(*servers, options.workload.rtt, options.slow);
  loadgen::QuorumPlan plan = plan_of(options, result.id);
  plan.so_far = [&](const std::vector<results::Run>& runs) {
    result.runs = runs;
    file.keep(result);
  };
  plan.run.maker = maker_of(out, result);
  plan.run.counter_url = nodes.counter_url();
  const auto measured = loadgen::measure_quorum(
      plan, nodes, [&](const std::string& line) { console.note(line); }, session.stop());
  result.interrupted = measured.interrupted;
  result.runs = measured.runs;
  file.keep(result);
  for (const std::string& line : measured.errors) console.warn("failure: " + line);
  for (const std::string& point : measured.violated) console.warn("exclusion was broken: " + point);
  return finish(
      result, options.output, file,
      {.exclusion_broken = !measured.violated.empty(), .errors = !measured.errors.empty()});
}

}  // namespace

Command quorum_command() {
  return make_command<QuorumOptions>(
      {.task = kMeasure,
       .summary = "Measure what a quorum costs, also with nodes down, frozen or slow.",
       .example = "lockbench quorum --nodes 3 --nodes 5 --clients 16",
       .over_ranks = true},
      quorum);
}

}  // namespace lockbench::cli
