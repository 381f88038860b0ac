#include <algorithm>
#include <random>

#include "cli/commands/prober.h"
#include "cli/console/session.h"
#include "strategies/thread.h"

namespace lockbench::cli {
namespace {

// Where /metrics is served on the loopback without --metrics-listen.
constexpr std::uint16_t kPort = 9465;
// One section in so many holds its lock, or fewer if a lock would otherwise always be held.
constexpr double kSectionsForAMeeting = 10;

/// A low rate over few locks. Now and then one is held, and a second client wants it.
loadgen::Workload workload_of(const ProbeOptions& options) {
  loadgen::Workload workload = options.workload;
  workload.key_per_client = true;
  if (!workload.hold.is_zero()) {
    workload.meet_every =
        std::max(to_duration(kSectionsForAMeeting / *workload.rate), 2 * workload.hold.mean());
  }
  workload.arrival = loadgen::Arrival::constant;
  workload.warmup = Duration::zero();
  // A section that has not started when the next one is due is abandoned, so that a recovering
  // store is not flooded. At least 1 s, as an acquisition may be slow.
  workload.longest_lag = std::max<Duration>(1s, to_duration(1 / *workload.rate));
  return workload;
}

/// Only strategies whose servers were given: a probe of a private server would show nothing about
/// the user's. A strategy that was named without servers is refused.
std::vector<Selected> select(const ProbeOptions& options) {
  const auto has_servers = [&](const Descriptor& strategy) {
    return !options.servers_of(strategy.backend).empty();
  };
  std::vector<Selected> selected = select_for_load(options);
  for (const auto& [strategy, named] : selected) {
    if (named && strategy->traits.updates) {
      throw UsageError("{} cannot be probed: it takes no lock", strategy->name);
    }
    if (!named || has_servers(*strategy)) continue;
    const StoreKind* const kind = find_store_kind(strategy->backend);
    if (kind == nullptr) throw UsageError("{} cannot be probed: it has no server", strategy->name);
    throw UsageError("{} cannot be probed without its servers: --{} {}", strategy->name, kind->name,
                     kind->value_name);
  }
  std::erase_if(selected, [&](const Selected& one) {
    const Traits& traits = one.strategy->traits;
    const bool by_default = traits.promises_exclusion && !traits.one_process;
    return !has_servers(*one.strategy) || traits.updates ||
           (options.strategies.empty() && !by_default);
  });
  if (selected.empty()) throw UsageError("nothing to probe: give servers, such as --redis URL");
  return selected;
}

/// Reports how the probers ended. Returns the exit code.
int end_probe(const std::vector<std::unique_ptr<Prober>>& probers, bool ran_out, Console& console) {
  if (std::ranges::all_of(probers, [](const auto& one) { return one->skipped().has_value(); })) {
    throw UsageError("nothing can run here: {}", *probers.front()->skipped());
  }
  Ending ending;
  for (const auto& prober : probers) {
    if (prober->broken()) {
      console.warn(
          fmt::format("exit code {}: {}", exit_code::kExclusionBroken, prober->what_broke()));
    }
    ending.exclusion_broken |= prober->broken();
    // Stopping a probe is its normal end: its errors are in the metrics, not in the exit code.
    ending.errors |= prober->gave_up() || (ran_out && prober->had_errors());
  }
  return exit_code_of(ending);
}

/// Probes all strategies side by side. Returns the exit code.
int probe_all(const std::string& run_id, const std::vector<Selected>& selected, Common& common,
              const std::stop_token& stop) {
  std::vector<std::unique_ptr<Prober>> probers;
  for (const Selected& one : selected) {
    // At the end of a round, each removes only its own keys.
    loadgen::RunPlan plan{.run_id = fmt::format("{}-{}", run_id, probers.size()),
                          .workload = common.options.workload};
    plan.strategies = {one.strategy};
    // Held locks are renewed if they can be, so that the probe sees renewal fail.
    auto& renew = plan.workload.strategy.renew;
    if (!renew && !one.strategy->traits.renews) renew = {.kind = RenewPolicy::Kind::automatic};
    probers.push_back(std::make_unique<Prober>(std::move(plan), one, common));
  }
  {
    std::vector<Thread> threads;
    for (const auto& prober : probers) {
      const auto failed = [&prober](const std::string& why) { prober->give_up(why); };
      auto started =
          Thread::start([&prober, &stop](const std::stop_token&) { prober->probe(stop); }, failed);
      if (started) {
        threads.push_back(*std::move(started));
      } else {
        failed(started.error());
      }
    }
  }
  return end_probe(probers, common.until && !stop.stop_requested(), common.console);
}

int probe(const ProbeOptions& given) {
  ProbeOptions options = given;
  options.workload = workload_of(given);
  if (!options.metrics.listen && exporter::available()) {
    options.metrics.listen = exporter::ListenAddress{.port = kPort};
  }
  std::vector<Selected> selected = select(options);
  std::vector<const Descriptor*> strategies;
  for (const Selected& one : selected) {
    strategies.push_back(one.strategy);
    // The label `deployment`: --deployment, or the addresses of the backend's servers.
    const std::string backend(one.strategy->backend);
    std::vector<std::string> addresses;
    for (const std::string& url : options.servers_of(backend)) {
      addresses.push_back(find_store_kind(backend)->display(url).value_or("?"));
    }
    options.metrics.deployments.emplace(
        backend, options.deployment.value_or(fmt::format("{}", fmt::join(addresses, ","))));
  }
  must(deployment::check(request_of(options), strategies));
  options.metrics.ready_at_once = false;

  Session session(options.output, false, "stopping: removing the probe's keys");
  Console& console = session.console();
  const std::string id = run_id(std::chrono::system_clock::now(), std::random_device()());
  Metrics metrics = Metrics::start(options, selected, id, console);
  session.warn_of_build();
  console.note(fmt::format("probing {} {}, {} sections per second each (run {})", selected.size(),
                           selected.size() == 1 ? "strategy" : "strategies", *options.workload.rate,
                           id));
  std::optional<TimePoint> until;
  if (options.duration) until = TimePoint::clock::now() + *options.duration;
  Common common{
      .options = options, .metrics = *metrics.watcher(), .console = console, .until = until};
  return probe_all(id, selected, common, session.stop());
}

}  // namespace

Command probe_command() {
  return make_command<ProbeOptions>(
      {.task = kDecide,
       .summary = "Probe a live deployment at a low rate and serve /metrics.",
       .example = "lockbench probe redis-fenced --redis redis://host:6379 --rate 1"},
      probe);
}

}  // namespace lockbench::cli
