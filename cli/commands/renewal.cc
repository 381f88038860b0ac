#include <fmt/format.h>

#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/console/deploy.h"
#include "cli/console/finish.h"
#include "cli/console/session.h"
#include "cli/options/option_types.h"
#include "loadgen/experiments/renewal_experiment.h"
#include "strategies/registry.h"
#include "testbed/servers/open_files.h"

namespace lockbench::cli {
namespace {

constexpr std::uint64_t kMostHeld = 1'000'000;

Option held_option() {
  Option option{.name = "held", .value_name = "N", .type = Option::Type::integer};
  option.help = "locks to hold; repeatable (1, 10, 100, 1000, 10000, 100000)";
  option.repeatable = true;
  option.set = [](RunOptions& options, const std::string& text) -> tl::expected<void, std::string> {
    const auto held = read_number<std::uint64_t>(text);
    if (!held || *held < 1 || *held > kMostHeld) {
      return tl::unexpected(
          fmt::format("\"{}\" is not a whole number from 1 to {}", text, kMostHeld));
    }
    options.renewal.held.push_back(*held);
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    std::vector<std::string> texts;
    for (const std::uint64_t held : options.renewal.held) texts.push_back(std::to_string(held));
    return texts;
  };
  return option;
}

std::vector<Option> renewal_options() {
  std::vector<Option> options = {
      held_option(),
      number_option(
          "most-threads", "N", "up to so many held locks also with a thread each",
          Range<std::uint64_t>{0, 20'000}, [](auto& o) -> auto& { return o.renewal.most_threads; }),
      number_option(
          "pairs", "N", "pairs of runs, with the locks held and without", Range<int>{1, 1000},
          [](auto& o) -> auto& { return o.renewal.pairs; })};
  auto shared = some_run_options({"clients", "duration", "ttl", "redis", "store-timeout", "out",
                                  "report", "format", "quiet", "config"});
  std::move(shared.begin(), shared.end(), std::back_inserter(options));
  return options;
}

/// The other clients: each on a lock of its own, for at least one period of renewal, so that each
/// held lock is renewed meanwhile.
loadgen::Workload foreground_of(const RunOptions& options) {
  loadgen::Workload workload = options.workload;
  workload.key_per_client = true;
  workload.duration = std::max(workload.duration, RenewalTiming{}.first(workload.ttl));
  return workload;
}

int finish_renewal(const RunOptions& options, const results::Result& result,
                   const std::string& error, const std::string& out, Console& console) {
  if (!error.empty()) console.warn(error);
  const auto& points = std::get<std::vector<results::RenewalPoint>>(result.experiment->points);
  const bool lost = std::any_of(points.begin(), points.end(),
                                [](const results::RenewalPoint& point) { return point.lost > 0; });
  return finish(result, experiment_text(result, options.format), out,
                {.errors = !error.empty() || lost}, console, options.report.page);
}

tl::expected<int, UsageError> renewal(const RunOptions& given) {
  RunOptions options = given;
  if (options.renewal.held.empty()) options.renewal.held = {1, 10, 100, 1'000, 10'000, 100'000};
  options.workload = foreground_of(options);
  results::Result result = begin_result();
  const auto out = out_path(options, result.id);
  if (!out) return tl::unexpected(out.error());

  Session session(options.quiet);
  Console& console = session.console();
  // A thread for each lock brings a connection for each; a private server has room for twice as
  // many as there are clients.
  const auto threads = static_cast<int>(
      std::min(options.renewal.most_threads, std::ranges::max(options.renewal.held)));
  RunOptions with_threads = options;
  with_threads.workload.clients += threads / 2 + 1;
  deployment::Request all_connections = request_of(options);
  all_connections.clients += threads;
  if (auto raised = testbed::raise_open_file_limit(deployment::open_files_for(all_connections));
      !raised) {
    return tl::unexpected(UsageError{fmt::format("--most-threads: {}", raised.error())});
  }
  std::vector<Selected> selected = {{find_strategy("redis-watchdog"), true},
                                    {find_strategy("redis-set-nx-lua"), true}};
  const auto deployed = session.deploy(with_threads, selected, result.skipped);
  if (!deployed) return tl::unexpected(deployed.error());
  if (!*deployed) return session.interrupted_early();
  const deployment::Deployment& servers = **deployed;

  const loadgen::RenewalPlan plan{.run_id = result.id,
                                  .endpoints = servers.endpoints,
                                  .held = options.renewal.held,
                                  .most_threads = options.renewal.most_threads,
                                  .pairs = options.renewal.pairs,
                                  .foreground = options.workload};
  auto measured = loadgen::measure_renewal(
      plan, [&](const std::string& line) { console.note(line); }, session.stop());
  result.interrupted = measured.interrupted;
  result.environment.servers = servers.facts;
  result.workload = record_of(options, renewal_options());
  result.experiment = results::Experiment{.points = std::move(measured.points)};
  return finish_renewal(options, result, measured.error, *out, console);
}

}  // namespace

Command renewal_command() {
  return {.name = "renewal",
          .summary = "What renewal costs, from 1 to 100,000 held locks.",
          .options = renewal_options(),
          .loads = true,
          .execute = renewal};
}

}  // namespace lockbench::cli
