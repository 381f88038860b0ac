#include <algorithm>
#include <chrono>
#include <random>

#include "cli/commands/commands.h"
#include "cli/commands/measurement.h"
#include "cli/commands/prober.h"
#include "cli/console/facts.h"
#include "cli/console/session.h"
#include "strategies/store.h"
#include "strategies/thread.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

// Where /metrics is served on the loopback without --metrics-listen.
constexpr std::uint16_t kPort = 9465;

// One section in so many holds its lock, or fewer if a lock would otherwise always be held.
constexpr double kSectionsForAMeeting = 10;

/// A low rate over few locks. Now and then one is held, and a second client wants it.
loadgen::Workload workload_of(const ProbeOptions& options) {
  loadgen::Workload workload = options.workload;
  workload.key_per_client = true;
  if (!workload.hold.is_zero()) {
    const std::chrono::duration<double> tenth(kSectionsForAMeeting / *workload.rate);
    workload.meet_every =
        std::max(std::chrono::duration_cast<Duration>(tenth), 2 * workload.hold.mean());
  }
  workload.arrival = loadgen::Arrival::constant;
  workload.warmup = Duration::zero();
  // A section that has not started when the next one is due is abandoned, so that a recovering
  // store is not flooded. At least 1 s, as an acquisition may be slow.
  const std::chrono::duration<double> gap(1 / *workload.rate);
  workload.longest_lag = std::max<Duration>(1s, std::chrono::duration_cast<Duration>(gap));
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
    if (!named || has_servers(*strategy)) continue;
    const StoreKind* const kind = find_store_kind(strategy->backend);
    if (kind == nullptr) throw UsageError("{} cannot be probed: it has no server", strategy->name);
    throw UsageError("{} cannot be probed without its servers: --{} {}", strategy->name, kind->name,
                     kind->value_name);
  }
  std::erase_if(selected, [&](const Selected& one) {
    const Traits& traits = one.strategy->traits;
    const bool by_default = traits.promises_exclusion && !traits.one_process;
    return !has_servers(*one.strategy) || (options.strategies.empty() && !by_default);
  });
  if (selected.empty()) throw UsageError("nothing to probe: give servers, such as --redis URL");
  return selected;
}

/// --deployment, or the addresses of each backend's servers.
std::map<std::string, std::string, std::less<>> deployments_of(
    const std::vector<Selected>& selected, const ProbeOptions& options) {
  std::map<std::string, std::string, std::less<>> names;
  for (const Selected& one : selected) {
    const StoreKind* const kind = find_store_kind(one.strategy->backend);
    if (kind == nullptr) continue;
    std::vector<std::string> addresses;
    for (const std::string& url : options.servers_of(kind->name)) {
      addresses.push_back(kind->display(url).value_or("?"));
    }
    names.emplace(kind->name,
                  options.deployment.value_or(fmt::format("{}", fmt::join(addresses, ","))));
  }
  return names;
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
int probe_all(const loadgen::RunPlan& plan_of_all, const std::vector<Selected>& selected,
              ProbeCommon& common, const std::stop_token& stop) {
  std::vector<std::unique_ptr<Prober>> probers;
  for (const Selected& one : selected) {
    loadgen::RunPlan plan = plan_of_all;
    plan.strategies = {one.strategy};
    // Held locks are renewed if they can be, so that the probe sees renewal fail.
    auto& renew = plan.workload.strategy.renew;
    if (!renew && !one.strategy->traits.renews) renew = {.kind = RenewPolicy::Kind::automatic};
    // At the end of a round, each removes only its own keys.
    plan.run_id += fmt::format("-{}", probers.size());
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
  if (!given.workload.rate) {
    throw UsageError(
        "probe requires --rate: sections per second of each strategy, such as --rate 1");
  }
  ProbeOptions options = given;
  options.workload = workload_of(given);
  const bool exports = exporter::available().has_value();
  if (!options.metrics.listen && exports) {
    options.metrics.listen = exporter::ListenAddress{.port = kPort};
  }
  std::vector<Selected> selected = select(options);
  std::vector<const Descriptor*> strategies;
  strategies.reserve(selected.size());
  for (const Selected& one : selected) strategies.push_back(one.strategy);
  must(deployment::check(request_of(options), strategies));
  options.metrics.deployments = deployments_of(selected, options);
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
  ProbeCommon common{.options = options,
                     .metrics = metrics.watcher(),
                     .until = until,
                     .console = console,
                     .servers = GivenServers(options)};
  return probe_all({.run_id = id, .workload = options.workload}, selected, common, session.stop());
}

}  // namespace

void ProbeOptions::declare(OptionList& options) {
  options.add("rate", "R", workload.rate, number(0.001, 1000),
              "sections per second of each strategy; required");
  options.add("clients", "N", workload.clients, whole_number(4, 64),
              "clients of each strategy, two for each lock");
  options.add("acquire-timeout", "D", workload.acquire_timeout, cli::duration(0s, 1h),
              "time after which a client gives up; 0s: after one attempt");
  options.add("duration", "D", duration, cli::duration(1ms, 8760h), "how long to probe",
              "until it is stopped");
  options.add("deployment", "NAME", deployment, any_text(),
              "value of the label `deployment` of all metrics", "the servers' addresses");
  options.only({"strategies", "client", "clients-per-process", "threads", "hold", "ttl", "wait",
                "renew", "node-timeout", "wait-replicas", "wait-timeout", "store-timeout"},
               [&] { LoadOptions::declare(options); });
  declare_servers(options, servers);
  options.at("strategies").default_text = "all that promise exclusion, on the servers given";
  options.at("renew").default_text = "the strategy's own, or else auto";
  options.at("hold").help =
      "how long a lock is held now and then, while its second client waits; 0s: never";
  options.at("hold").default_text = "1.2 times the renewal interval";
  options.only({"metrics-listen"}, [&] { metrics.declare(options); });
  options.only({"quiet", "events", "config"}, [&] { output.declare(options); });
}

void ProbeOptions::complete(const OptionList& options) {
  LoadOptions::complete(options);
  if (workload.clients % 2 != 0) {
    throw UsageError(
        "--clients {} leaves a client alone: two share each lock, so use an even number",
        workload.clients);
  }
  if (!options.given("hold")) {
    const auto& renew = workload.strategy.renew;
    const bool every = renew && renew->kind == RenewPolicy::Kind::every;
    const Duration interval = every ? renew->period : RenewalTiming{}.first(workload.ttl);
    workload.hold = loadgen::DurationDistribution::constant(interval + interval / 5);
  }
}

Command probe_command() {
  return make_command<ProbeOptions>(
      {.task = kDecide,
       .summary = "Probe a live deployment at a low rate and serve /metrics.",
       .example = "lockbench probe redis-fenced --redis redis://host:6379 --rate 1"},
      probe);
}

}  // namespace lockbench::cli
