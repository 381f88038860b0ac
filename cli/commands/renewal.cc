#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/console/ranks.h"
#include "cli/console/session.h"
#include "loadgen/experiments/renewal_experiment.h"
#include "loadgen/run/runner.h"
#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

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

/// The load beside the held locks: each client has its own lock, and runs for at least one renewal
/// period, so that each held lock is renewed in the meantime.
loadgen::Workload foreground_of(const RenewalOptions& options) {
  loadgen::Workload workload = options.workload;
  workload.key_per_client = true;
  workload.duration = std::max(workload.duration, RenewalTiming{}.first(workload.ttl));
  return workload;
}

int renewal(const RenewalOptions& given) {
  RenewalOptions options = given;
  if (options.held.empty()) options.held = {1, 10, 100, 1'000, 10'000, 100'000};
  options.workload = foreground_of(options);
  results::Result result = begin_result(options.output);
  const std::string out = out_path(options.output, result);

  Session session(options.output);
  Console& console = session.console();
  LoadOptions with_holders = options;
  ++with_holders.workload.clients;  // a private server takes twice as many
  std::vector<Selected> selected = {{find_strategy("redis-watchdog"), true},
                                    {find_strategy("redis-set-nx-lua"), true}};
  const auto servers = session.deploy(with_holders, selected, result.skipped);
  if (!servers) return session.interrupted_early();

  result.environment.servers = servers->facts;
  result.workload = workload_record(options);
  result.interrupted = true;  // until it is over
  ResultFile file(out, console);
  const auto keep = [&](const std::vector<results::Run>& runs) {
    result.runs = runs;
    file.keep(result);
  };
  loadgen::RenewalPlan plan{.foreground = plan_on(*servers, result.id),
                            .held = options.held,
                            .pairs = options.pairs,
                            .so_far = keep};
  plan.foreground.workload = options.workload;
  plan.foreground.maker = maker_of(out, result);
  const bool private_servers = options.servers_of("redis").empty();
  // Ranks know their own cores.
  if (Ranks::joined() == nullptr) {
    plan.foreground.workload.threads =
        loadgen::generator_threads(options.workload, private_servers);
  }
  const auto measured = loadgen::measure_renewal(
      plan, [&](const std::string& line) { console.note(line); }, session.stop());
  result.interrupted = measured.interrupted;
  keep(measured.runs);
  if (!measured.error.empty()) console.warn(measured.error);
  Ending ending{.errors = !measured.error.empty()};
  for (const results::Run& run : result.runs) {
    ending.errors |= run.renewal && run.renewal->lost > 0;
    ending.exclusion_broken |= run.audit.verdict == results::Verdict::violated;
  }
  return finish(result, options.output, file, ending);
}

}  // namespace

Command renewal_command() {
  return make_command<RenewalOptions>(
      {.task = kMeasure,
       .summary = "Measure what lease renewal costs, with 1 to 100,000 held locks.",
       .example = "lockbench renewal --held 1000 --held 10000 --ttl 10s",
       .over_ranks = true},
      renewal);
}

}  // namespace lockbench::cli
