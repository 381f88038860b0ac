#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/commands/commands.h"
#include "cli/commands/quorum_servers.h"
#include "cli/console/deploy.h"
#include "cli/console/finish.h"
#include "cli/console/session.h"
#include "cli/options/option_types.h"
#include "testbed/servers/open_files.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kMostNodes = 15;

Option nodes_option() {
  Option option{.name = "nodes", .value_name = "N", .type = Option::Type::integer};
  option.help = "nodes of the quorum; repeatable (1, 3, 5, 7)";
  option.repeatable = true;
  option.set = [](RunOptions& options, const std::string& text) -> tl::expected<void, std::string> {
    const auto nodes = read_number<int>(text);
    if (!nodes || *nodes < 1 || *nodes > kMostNodes) {
      return tl::unexpected(
          fmt::format("\"{}\" is not a whole number from 1 to {}", text, kMostNodes));
    }
    auto& all = options.quorum.nodes;
    if (std::find(all.begin(), all.end(), *nodes) == all.end()) all.push_back(*nodes);
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    std::vector<std::string> texts;
    for (const int nodes : options.quorum.nodes) texts.push_back(std::to_string(nodes));
    return texts;
  };
  return option;
}

std::vector<Option> quorum_options() {
  std::vector<Option> options = {
      nodes_option(),
      number_option(
          "clients", "N", "clients of the points at which they contend for one lock",
          Range<int>{1, 1000}, [](auto& o) -> auto& { return o.workload.clients; }),
      duration_option(
          "duration", "how long to measure each point", {10ms, 1h},
          [](auto& o) -> auto& { return o.quorum.duration; }),
      duration_option(
          "slow", "what slow nodes take longer", {1ms, 1h},
          [](auto& o) -> auto& { return o.quorum.slow; })};
  auto shared = some_run_options({"ttl", "node-timeout", "replicas", "rtt", "store-timeout", "out",
                                  "report", "format", "quiet", "config"});
  std::move(shared.begin(), shared.end(), std::back_inserter(options));
  return options;
}

loadgen::QuorumPlan plan_of(const RunOptions& options, const std::string& run_id) {
  loadgen::QuorumPlan plan{.run_id = run_id,
                           .nodes = options.quorum.nodes,
                           .contending = options.workload.clients,
                           .slow = options.quorum.slow,
                           .workload = options.workload};
  plan.workload.duration = options.quorum.duration;
  plan.workload.warmup = std::min<Duration>(200ms, options.quorum.duration);
  plan.workload.rtt = {};  // the servers' own
  return plan;
}

int finish_quorum(const RunOptions& options, const results::Result& result,
                  const loadgen::QuorumMeasured& measured, const std::string& out,
                  Console& console) {
  for (const std::string& line : measured.errors) console.warn("failure: " + line);
  for (const std::string& point : measured.violated) {
    console.warn("exclusion was broken: " + point);
  }
  return finish(
      result, experiment_text(result, options.format), out,
      {.exclusion_broken = !measured.violated.empty(), .errors = !measured.errors.empty()}, console,
      options.report.page);
}

tl::expected<int, UsageError> quorum(const RunOptions& given) {
  RunOptions options = given;
  if (options.quorum.nodes.empty()) options.quorum.nodes = {1, 3, 5, 7};
  std::sort(options.quorum.nodes.begin(), options.quorum.nodes.end());
  results::Result result = begin_result();
  const auto out = out_path(options, result.id);
  if (!out) return tl::unexpected(out.error());

  Session session(options.quiet);
  Console& console = session.console();
  const int most = options.quorum.nodes.back();
  // Each client reaches every node, at the worst through a proxy.
  const std::uint64_t files = static_cast<std::uint64_t>(options.workload.clients * most) * 3 + 256;
  if (auto raised = testbed::raise_open_file_limit(files); !raised) {
    return tl::unexpected(UsageError{fmt::format("--clients: {}", raised.error())});
  }
  deployment::Request request = request_of(options);
  request.nodes = most;
  const auto servers = QuorumServers::start(request, options.quorum.slow);
  if (!servers) return tl::unexpected(UsageError{servers.error()});
  const auto facts = (*servers)->facts(request.command_timeout, session.stop());
  if (session.stopped()) return session.interrupted_early();
  if (!facts) return tl::unexpected(UsageError{facts.error()});
  session.warn_of(result.lockbench);

  auto measured = loadgen::measure_quorum(
      plan_of(options, result.id), **servers, [&](const std::string& line) { console.note(line); },
      session.stop());
  result.interrupted = measured.interrupted;
  result.environment.servers = *facts;
  result.workload = record_of(options, quorum_options());
  result.experiment = results::Experiment{.points = measured.points};
  return finish_quorum(options, result, measured, *out, console);
}

}  // namespace

Command quorum_command() {
  return {.name = "quorum",
          .summary = "What a quorum costs, by its nodes, down, frozen and slow ones.",
          .options = quorum_options(),
          .execute = quorum};
}

}  // namespace lockbench::cli
