#include "cli/commands/quorum.h"

#include <algorithm>
#include <chrono>

#include "cli/commands/commands.h"
#include "cli/commands/finish.h"
#include "cli/commands/quorum_servers.h"
#include "cli/console/deploy.h"
#include "cli/console/ranks.h"
#include "cli/console/session.h"
#include "cli/options/value_types.h"
#include "loadgen/run/runner.h"
#include "testbed/servers/machine.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

loadgen::QuorumPlan plan_of(const QuorumOptions& options, const std::string& run_id) {
  loadgen::QuorumPlan plan{.run = {},
                           .nodes = options.nodes,
                           .contending = options.workload.clients,
                           .slow = options.slow};
  plan.run.run_id = run_id;
  loadgen::Workload& workload = plan.run.workload;
  workload = options.workload;
  workload.warmup = std::min<Duration>(200ms, options.workload.duration);
  workload.rtt = {};  // QuorumServers adds it
  // Ranks know their own cores.
  if (Ranks::joined() == nullptr) workload.threads = loadgen::generator_threads(workload, true);
  return plan;
}

int finish_quorum(const QuorumOptions& options, const results::Result& result,
                  const loadgen::QuorumMeasured& measured, ResultFile& file) {
  for (const std::string& line : measured.errors) file.console().warn("failure: " + line);
  for (const std::string& point : measured.violated) {
    file.console().warn("exclusion was broken: " + point);
  }
  return finish(
      result, options.output, file,
      {.exclusion_broken = !measured.violated.empty(), .errors = !measured.errors.empty()});
}

int quorum(const QuorumOptions& given) {
  QuorumOptions options = given;
  if (options.nodes.empty()) options.nodes = {1, 3, 5, 7};
  std::sort(options.nodes.begin(), options.nodes.end());
  results::Result result = begin_result(options.output);
  const std::string out = out_path(options.output, result);

  Session session(options.output);
  Console& console = session.console();
  const Ranks* const ranks = Ranks::joined();
  if (const std::string far = ranks == nullptr ? "" : ranks->beyond_loopback(); !far.empty()) {
    throw UsageError("{}, and quorum has no others", far);
  }
  const int most = options.nodes.back();
  // Each client connects to every node; a proxy has both ends of the connection open, too.
  const std::uint64_t files = static_cast<std::uint64_t>(options.workload.clients * most) * 3 + 256;
  must(testbed::raise_open_file_limit(files), "--clients");
  deployment::Request request = request_of(options);
  request.nodes = most;
  const auto servers = must(QuorumServers::start(request, options.slow));
  const auto facts = servers->facts(request.command_timeout, session.stop());
  if (session.stopped()) return session.interrupted_early();
  result.environment.servers = must(facts);
  session.warn_of(result.lockbench);

  result.workload = workload_record(options);
  result.interrupted = true;  // until it is over
  ResultFile file(out, console);
  loadgen::QuorumPlan plan = plan_of(options, result.id);
  plan.so_far = [&](const std::vector<results::Run>& runs) {
    result.runs = runs;
    file.keep(result);
  };
  plan.run.maker = maker_of(out, result);
  plan.run.counter_url = servers->counter_url();
  auto measured = loadgen::measure_quorum(
      plan, *servers, [&](const std::string& line) { console.note(line); }, session.stop());
  result.interrupted = measured.interrupted;
  result.runs = measured.runs;
  if (note_lost_ranks(out, result, console)) measured.errors.emplace_back("a rank was lost");
  file.keep(result);
  return finish_quorum(options, result, measured, file);
}

}  // namespace

void QuorumOptions::declare(OptionList& options) {
  ValueType<int> node_count = whole_number(1, 15);
  options.add("nodes", "N", nodes, each_once(node_count), "nodes of the quorum", "1, 3, 5, 7");
  options.add("clients", "N", workload.clients, whole_number(1, 1000),
              "clients that contend for one lock, at the points with contention");
  options.add("duration", "D", workload.duration, duration(10ms, 1h),
              "measured time of each point");
  options.add("slow", "D", slow, duration(1ms, 1h), "round-trip time added to slow nodes");
  options.only({"threads", "ttl", "node-timeout", "replicas", "rtt", "tls", "store-timeout"},
               [&] { LoadOptions::declare(options); });
  options.without({"resume", "strict"}, [&] { output.declare(options); });
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
