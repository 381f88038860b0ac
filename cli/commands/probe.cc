#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "cli/commands/commands.h"
#include "cli/commands/metrics.h"
#include "cli/commands/probe_health.h"
#include "cli/console/facts.h"
#include "cli/console/session.h"
#include "cli/options/value_types.h"
#include "loadgen/run/runner.h"
#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

// A probe is a sequence of runs of this length, so that the records of a run stay small.
constexpr Duration kRound = 1h;
// Where /metrics is served on the loopback without --metrics-listen.
constexpr std::uint16_t kPort = 9465;
// Between attempts to reach a store.
constexpr WaitPolicy kReconnecting = {.kind = WaitKind::backoff, .min = 200ms, .max = 10s};

struct ProbeOptions : LoadOptions {
  static constexpr Commands kCommand = kProbe;
  std::optional<Duration> duration;

  ProbeOptions() {
    workload.clients = 2;
    workload.acquire_timeout = 2s;
  }
  void declare(OptionList& options) {
    options.add({"rate", "R"}, workload.rate, number(0.001, 1000),
                "sections per second of each strategy; required");
    options.add({"clients", "N"}, workload.clients, whole_number(1, 64),
                "clients of each strategy");
    options.add({"acquire-timeout", "D"}, workload.acquire_timeout, cli::duration(0s, 1h),
                "time after which a client gives up; 0s: after one attempt");
    options.add({"duration", "D"}, duration, cli::duration(1ms, 8760h), "how long to probe",
                "until it is stopped");
    LoadOptions::declare(options);
    for (Option& option : options.all()) {
      if (option.positional)
        option.default_text = "all that promise exclusion, on the servers given";
    }
  }
};

/// A low rate over few clients, each with a lock of its own.
loadgen::Workload workload_of(const ProbeOptions& options) {
  loadgen::Workload workload = options.workload;
  workload.key_per_client = true;
  workload.arrival = loadgen::Arrival::constant;
  workload.warmup = Duration::zero();
  // A section that has not started when the next one is due is abandoned, so that a store that
  // comes back is not flooded. At least 1 s, which a slow acquisition may take.
  const std::chrono::duration<double> gap(1 / *workload.rate);
  workload.longest_lag = std::max<Duration>(1s, std::chrono::duration_cast<Duration>(gap));
  return workload;
}

/// Without names: all strategies that promise exclusion and whose servers were given.
tl::expected<std::vector<Selected>, UsageError> select(const ProbeOptions& options) {
  std::vector<const Descriptor*> catalogue = all_strategies();
  if (options.strategies.empty()) {
    std::erase_if(catalogue, [&](const Descriptor* strategy) {
      const bool promises = strategy->traits.promises_exclusion && !strategy->traits.one_process;
      return !promises || options.servers_of(strategy->backend).empty();
    });
    if (catalogue.empty()) {
      return tl::unexpected(
          UsageError{"nothing to probe: name strategies, or servers such as --redis URL, or both"});
    }
  }
  return select_for_load(options, std::move(catalogue));
}

/// Probes one strategy, on a thread of its own, until --duration is over or the stop.
class Prober {
 public:
  Prober(loadgen::RunPlan plan, exporter::RunMetrics* metrics, std::optional<TimePoint> until,
         Console& console)
      : plan_(std::move(plan)),
        metrics_(metrics),
        until_(until),
        health_(plan_.strategies.front()->name, console) {}

  void probe(const std::stop_token& stop) {
    const auto env = make_system_env(std::random_device()());
    std::uint32_t failed_attempts = 0;
    while (!stop.stop_requested() && (!until_ || env->now() < *until_)) {
      plan_.workload.duration = until_ ? std::min(kRound, *until_ - env->now()) : kRound;
      const TimePoint began = env->now();
      const loadgen::RunReport report = loadgen::run_plan(plan_, health_, stop);
      for (const results::Run& run : report.runs) note(run);
      if (report.not_started.empty()) {
        failed_attempts = 0;
        continue;
      }
      had_errors_ = true;
      health_.on_unreachable(report.not_started.front().reason);
      if (metrics_ != nullptr)
        metrics_->not_connected(*plan_.strategies.front(), env->now() - began);
      const TimePoint again = env->now() + kReconnecting.delay(failed_attempts++, *env);
      env->wait(nullptr, until_ ? std::min(again, *until_) : again, stop);
    }
  }

  bool broken() const { return broken_; }
  bool had_errors() const { return had_errors_; }

 private:
  void note(const results::Run& run) {
    broken_ = broken_ || run.audit.verdict == results::Verdict::violated;
    // The clients do not contend, so each of them should get its lock at once.
    const results::Outcomes& outcomes = run.outcomes;
    had_errors_ = had_errors_ ||
                  outcomes.failed + outcomes.unknown + outcomes.timed_out + outcomes.refused > 0;
  }

  loadgen::RunPlan plan_;
  exporter::RunMetrics* metrics_;
  const std::optional<TimePoint> until_;
  ProbeHealth health_;
  bool broken_ = false, had_errors_ = false;
};

/// Probes all strategies side by side. Returns the exit code.
int probe_all(const loadgen::RunPlan& common, const std::vector<Selected>& selected,
              const ProbeOptions& options, Metrics& metrics, Console& console,
              const std::stop_token& stop) {
  std::optional<TimePoint> until;
  if (options.duration) until = TimePoint::clock::now() + *options.duration;
  std::vector<std::unique_ptr<Prober>> probers;
  for (const Selected& one : selected) {
    loadgen::RunPlan plan = common;
    plan.strategies = {one.strategy};
    // Each removes only its own keys at the end of a round.
    plan.run_id += fmt::format("-{}", probers.size());
    probers.push_back(std::make_unique<Prober>(std::move(plan), metrics.metrics(), until, console));
  }
  {
    std::vector<std::jthread> threads;
    threads.reserve(probers.size());
    for (const auto& prober : probers) {
      threads.emplace_back([&prober, &stop] { prober->probe(stop); });
    }
  }
  Ending ending;
  for (const auto& prober : probers) {
    ending.exclusion_broken = ending.exclusion_broken || prober->broken();
    // Stopping a probe is its normal end: its errors are in the metrics, not in the exit code.
    const bool ran_out = options.duration && !stop.stop_requested();
    ending.errors = ending.errors || (ran_out && prober->had_errors());
  }
  return exit_code_of(ending);
}

tl::expected<int, UsageError> probe(const ProbeOptions& given) {
  if (!given.workload.rate) {
    return tl::unexpected(UsageError{
        "probe requires --rate: sections per second of each strategy, such as --rate 1"});
  }
  ProbeOptions options = given;
  options.workload = workload_of(given);
  const bool exports = exporter::available().has_value();
  if (!options.metrics.listen && exports) {
    options.metrics.listen = exporter::ListenAddress{.port = kPort};
  }
  auto selected = select(options);
  if (!selected) return tl::unexpected(selected.error());

  Session session(options.output.quiet, false, "stopping: removing the probe's keys");
  Console& console = session.console();
  const std::string id = run_id(std::chrono::system_clock::now(), std::random_device()());
  auto metrics = Metrics::start(options, *selected, id, console);
  if (!metrics) return tl::unexpected(metrics.error());
  std::vector<results::Skipped> skipped;
  const auto deployment = session.deploy(options, *selected, skipped);
  if (!deployment) return tl::unexpected(deployment.error());
  if (!*deployment) return exit_code::kFine;
  console.note(fmt::format("probing {} {}, {} sections per second each", selected->size(),
                           selected->size() == 1 ? "strategy" : "strategies",
                           *options.workload.rate));
  const loadgen::RunPlan common{.run_id = id,
                                .workload = options.workload,
                                .endpoints = (*deployment)->endpoints,
                                .watcher = metrics->watcher()};
  return probe_all(common, *selected, options, *metrics, console, session.stop());
}

}  // namespace

Command probe_command() {
  return make_command<ProbeOptions>(
      {.name = "probe",
       .task = kDecide,
       .summary = "Probe a live deployment at a low rate and serve /metrics.",
       .example = "lockbench probe redis-fenced --redis redis://host:6379 --rate 1"},
      probe);
}

}  // namespace lockbench::cli
