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
#include "cli/console/exit_code.h"
#include "cli/console/facts.h"
#include "cli/console/session.h"
#include "cli/options/option_types.h"
#include "loadgen/run/runner.h"
#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

// A probe is many runs, one after the other, so that nothing grows for ever.
constexpr Duration kRound = 1h;
// On the loopback, where it serves its metrics unless told otherwise.
constexpr std::uint16_t kPort = 9465;
// Between attempts to reach a store that cannot be reached.
constexpr WaitPolicy kReconnecting = {.kind = WaitKind::backoff, .min = 200ms, .max = 10s};

Option probe_duration_option() {
  Option option{.name = "duration", .value_name = "D"};
  option.help = "how long to probe (until it is stopped)";
  option.set = [](RunOptions& options, const std::string& text) -> tl::expected<void, std::string> {
    const auto duration = parse_duration(text);
    if (!duration) return tl::unexpected(duration.error());
    if (auto allowed = check_range(text, *duration, {1ms, 8760h}); !allowed) return allowed;
    options.probe.duration = *duration;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (!options.probe.duration) return nullptr;
    return seconds(*options.probe.duration);
  };
  return option;
}

std::vector<Option> probe_options() {
  std::vector<Option> options = {
      number_option(
          "rate", "R", "sections per second of each strategy", Range<double>{0.001, 1000},
          [](auto& o) -> auto& { return o.workload.rate; }),
      number_option(
          "clients", "N", "clients of each strategy", Range<int>{1, 64},
          [](auto& o) -> auto& { return o.probe.clients; }),
      duration_option(
          "acquire-timeout", "when a client gives up; 0s: after one attempt", {0s, 1h},
          [](auto& o) -> auto& { return o.probe.acquire_timeout; }),
      probe_duration_option()};
  for (auto part : {some_run_options({"strategies", "hold", "ttl", "wait", "renew", "node-timeout",
                                      "wait-replicas", "wait-timeout", "store-timeout",
                                      "metrics-listen", "quiet", "config"}),
                    server_options()}) {
    std::move(part.begin(), part.end(), std::back_inserter(options));
  }
  return options;
}

/// A low rate over few clients, each section on a lock of its client's own.
loadgen::Workload workload_of(const RunOptions& options) {
  loadgen::Workload workload = options.workload;
  workload.clients = options.probe.clients;
  workload.key_per_client = true;
  workload.arrival = loadgen::Arrival::constant;
  workload.warmup = Duration::zero();
  workload.acquire_timeout = options.probe.acquire_timeout;
  // One that is due is late at most until the next one is.
  const std::chrono::duration<double> gap(1 / *workload.rate);
  workload.longest_lag = std::max<Duration>(1s, std::chrono::duration_cast<Duration>(gap));
  return workload;
}

/// Without names: all that promise exclusion on the servers that were given.
tl::expected<std::vector<Selected>, UsageError> select(const RunOptions& options) {
  std::vector<const Descriptor*> catalogue = all_strategies();
  if (options.strategies.empty()) {
    std::erase_if(catalogue, [&](const Descriptor* strategy) {
      const bool promises = strategy->traits.promises_exclusion && !strategy->traits.one_process;
      return !promises || options.servers_of(strategy->backend).empty();
    });
    if (catalogue.empty()) {
      return tl::unexpected(UsageError{
          "what is to be probed? Name strategies, or servers such as --redis URL, or both"});
    }
  }
  return select_for_load(options, std::move(catalogue));
}

/// Probes one strategy on a thread of its own, until its time is up or the stop.
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
    std::uint32_t in_vain = 0;
    while (!stop.stop_requested() && (!until_ || env->now() < *until_)) {
      plan_.workload.duration = until_ ? std::min(kRound, *until_ - env->now()) : kRound;
      const TimePoint began = env->now();
      const loadgen::RunReport report = loadgen::run_plan(plan_, health_, stop);
      for (const results::Run& run : report.runs) note(run);
      if (report.not_started.empty()) {
        in_vain = 0;
        continue;
      }
      troubled_ = true;
      health_.not_reached(report.not_started.front().reason);
      if (metrics_ != nullptr)
        metrics_->not_connected(*plan_.strategies.front(), env->now() - began);
      const TimePoint again = env->now() + kReconnecting.delay(in_vain++, *env);
      env->wait(nullptr, until_ ? std::min(again, *until_) : again, stop);
    }
  }

  bool broken() const { return broken_; }
  bool troubled() const { return troubled_; }

 private:
  void note(const results::Run& run) {
    broken_ = broken_ || run.audit.verdict == results::Verdict::violated;
    // Its clients do not contend: what is not granted is trouble.
    const results::Outcomes& outcomes = run.outcomes;
    troubled_ =
        troubled_ || outcomes.failed + outcomes.unknown + outcomes.timed_out + outcomes.refused > 0;
  }

  loadgen::RunPlan plan_;
  exporter::RunMetrics* metrics_;
  const std::optional<TimePoint> until_;
  ProbeHealth health_;
  bool broken_ = false, troubled_ = false;
};

/// All strategies side by side. The result is the exit code.
int probe_all(const loadgen::RunPlan& common, const std::vector<Selected>& selected,
              const RunOptions& options, Metrics& metrics, Console& console,
              const std::stop_token& stop) {
  std::optional<TimePoint> until;
  if (options.probe.duration) until = TimePoint::clock::now() + *options.probe.duration;
  std::vector<std::unique_ptr<Prober>> probers;
  for (const Selected& one : selected) {
    loadgen::RunPlan plan = common;
    plan.strategies = {one.strategy};
    // What one removes at the end of a round is its own.
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
    // Whoever stops a probe ends it as it is meant to end; what it met is in the metrics.
    const bool ran_out = options.probe.duration && !stop.stop_requested();
    ending.errors = ending.errors || (ran_out && prober->troubled());
  }
  return exit_code_of(ending);
}

tl::expected<int, UsageError> probe(const RunOptions& given) {
  if (!given.workload.rate) {
    return tl::unexpected(
        UsageError{"--rate is needed: sections per second of each strategy, such as --rate 1"});
  }
  RunOptions options = given;
  options.workload = workload_of(given);
  const bool exports = exporter::available().has_value();
  if (!options.metrics.listen && exports)
    options.metrics.listen = exporter::ListenAddress{.port = kPort};
  auto selected = select(options);
  if (!selected) return tl::unexpected(selected.error());

  Session session(options.quiet, false, "stopping: removing the probe's keys");
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
  return {.name = "probe",
          .summary = "A canary of a live deployment: few locks, a low rate, /metrics.",
          .options = probe_options(),
          .loads = true,
          .execute = probe};
}

}  // namespace lockbench::cli
