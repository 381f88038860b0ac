#include <algorithm>
#include <chrono>
#include <random>

#include "cli/commands/commands.h"
#include "cli/commands/measurement.h"
#include "cli/console/facts.h"
#include "cli/console/session.h"
#include "strategies/store.h"
#include "strategies/thread.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using loadgen::FailureReason;

// A probe is a sequence of runs of this length, so that the records of a run stay small.
constexpr Duration kRound = 10min;
// Where /metrics is served on the loopback without --metrics-listen.
constexpr std::uint16_t kPort = 9465;
// Between attempts to reach a store.
constexpr WaitPolicy kReconnecting = {.kind = WaitKind::backoff, .min = 200ms, .max = 10s};

// One section in so many holds its lock, or fewer if a lock would otherwise always be held.
constexpr double kSectionsForAMeeting = 10;
// A strategy counts as working again after so long without a failure, or longer (see calm_of).
constexpr Duration kCalm = 5s;

// A store that fails in changing ways must not fill the log.
constexpr Duration kBetweenReasons = std::chrono::seconds(10);

struct ProbeOptions : LoadOptions {
  static constexpr std::string_view kCommand = "probe";
  std::optional<Duration> duration;
  std::optional<std::string> deployment;

  ProbeOptions() {
    workload.clients = 4;
    workload.acquire_timeout = 2s;
    workload.ttl = 3s;
  }
  void declare(OptionList& options) {
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
    options.only({"strategies", "threads", "hold", "ttl", "wait", "renew", "node-timeout",
                  "wait-replicas", "wait-timeout", "store-timeout"},
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

  void complete(const OptionList& options) {
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
};

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

/// Probes one strategy, on its own thread, until --duration is over or a stop.
class Prober {
 public:
  Prober(loadgen::RunPlan plan, exporter::RunMetrics* metrics, std::optional<TimePoint> until,
         Console& console)
      : plan_(std::move(plan)),
        metrics_(metrics),
        until_(until),
        health_(plan_.strategies.front()->name, calm_of(plan_.workload), console,
                [this](std::optional<FailureReason> reason) { tell(reason); }) {}

  void probe(const std::stop_token& stop) {
    const auto env = make_system_env(random_seed());
    std::uint32_t failed_attempts = 0;
    while (!stop.stop_requested() && (!until_ || env->now() < *until_)) {
      plan_.workload.duration = until_ ? std::min(kRound, *until_ - env->now()) : kRound;
      const TimePoint began = env->now();
      const loadgen::RunReport report = loadgen::run_plans({&plan_, 1}, health_, stop);
      for (const results::Run& run : report.runs) note(run);
      if (report.not_started.empty()) {
        failed_attempts = 0;
        continue;
      }
      had_errors_ = true;
      const std::string& why = report.not_started.front().reason;
      health_.on_unreachable(why);
      const Duration tried = env->now() - began;
      const TimePoint again = env->now() + kReconnecting.delay(failed_attempts++, *env);
      env->wait(nullptr, until_ ? std::min(again, *until_) : again, stop);
      note_outage(why, tried, env->now() - began);
    }
  }

  /// Call if its thread could not start, or failed.
  void give_up(const std::string& why) {
    gave_up_ = true;
    health_.on_unreachable(why);
  }
  bool gave_up() const { return gave_up_; }

  bool broken() const { return broken_; }
  bool had_errors() const { return had_errors_; }

 private:
  static Duration calm_of(const loadgen::Workload& workload) {
    // By then each lock has been tried again.
    const std::chrono::duration<double> round(workload.key_count() / *workload.rate);
    return std::max(kCalm, std::chrono::duration_cast<Duration>(round));
  }

  const Descriptor& strategy() const { return *plan_.strategies.front(); }

  void tell(std::optional<FailureReason> reason) {
    if (metrics_ == nullptr) return;
    std::optional<std::string> why;
    if (reason) why = fmt::format("{}: {}", info_of(*reason).name, info_of(*reason).meaning);
    metrics_->set_failing(strategy(), std::move(why));
  }

  /// The sections that were due in `lost` count as failed.
  void note_outage(const std::string& why, Duration tried, Duration lost) {
    due_ += seconds(lost) * *plan_.workload.rate;
    const auto sections = static_cast<std::uint64_t>(due_);
    due_ -= static_cast<double>(sections);
    if (metrics_ == nullptr) return;
    metrics_->not_connected(strategy(), loadgen::reason_of(why), tried, sections);
  }

  void note(const results::Run& run) {
    broken_ |= run.audit.verdict == results::Verdict::violated;
    // A time-out is an error: nobody else uses these locks, and the clients wait long enough for
    // each other.
    const results::Outcomes& outcomes = run.outcomes;
    had_errors_ |= outcomes.failed + outcomes.unknown + outcomes.timed_out + outcomes.refused > 0;
  }

  loadgen::RunPlan plan_;
  exporter::RunMetrics* metrics_;
  const std::optional<TimePoint> until_;
  ProbeHealth health_;
  double due_ = 0;  ///< sections, or a part of one, that were due during an outage
  bool broken_ = false, had_errors_ = false, gave_up_ = false;
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
    // Held locks are renewed if they can be, so that the probe sees renewal fail.
    auto& renew = plan.workload.strategy.renew;
    if (!renew && !one.strategy->traits.renews) renew = {.kind = RenewPolicy::Kind::automatic};
    // At the end of a round, each removes only its own keys.
    plan.run_id += fmt::format("-{}", probers.size());
    probers.push_back(std::make_unique<Prober>(std::move(plan), metrics.watcher(), until, console));
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
  Ending ending;
  for (const auto& prober : probers) {
    ending.exclusion_broken |= prober->broken();
    // Stopping a probe is its normal end: its errors are in the metrics, not in the exit code.
    const bool ran_out = options.duration && !stop.stop_requested();
    ending.errors |= prober->gave_up() || (ran_out && prober->had_errors());
  }
  return exit_code_of(ending);
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
  options.metrics.deployments = deployments_of(selected, options);
  options.metrics.ready_at_once = false;

  Session session(options.output, false, "stopping: removing the probe's keys");
  Console& console = session.console();
  const std::string id = run_id(std::chrono::system_clock::now(), std::random_device()());
  Metrics metrics = Metrics::start(options, selected, id, console);
  std::vector<results::Skipped> skipped;
  const auto deployment = session.deploy(options, selected, skipped);
  if (!deployment) return exit_code::kFine;
  console.note(fmt::format("probing {} {}, {} sections per second each (run {})", selected.size(),
                           selected.size() == 1 ? "strategy" : "strategies", *options.workload.rate,
                           id));
  const loadgen::RunPlan common{.run_id = id,
                                .workload = options.workload,
                                .endpoints = deployment->endpoints,
                                .watcher = metrics.watcher()};
  return probe_all(common, selected, options, metrics, console, session.stop());
}

}  // namespace

void ProbeHealth::on_progress(const loadgen::Progress& progress) {
  if (progress.phase == loadgen::Progress::Phase::connecting) {
    sections_ = 0;
    failures_ = {};
  }
  const bool worked = progress.sections > std::exchange(sections_, progress.sections);
  Failures lately = progress.failures;
  for (std::size_t i = 0; i < lately.values.size(); ++i) lately.values[i] -= failures_.values[i];
  failures_ = progress.failures;
  if (const auto reason = main_reason(lately)) {
    fails(*reason, progress.messages[*reason]);
  } else if (progress.stuck > 0) {
    fails(FailureReason::taken, {});
  } else if (worked) {
    works();
  }
}

void ProbeHealth::on_warning(const std::string& line) { console_.warn("warning: " + line); }

void ProbeHealth::on_unreachable(const std::string& why) { fails(loadgen::reason_of(why), why); }

std::optional<FailureReason> ProbeHealth::main_reason(Failures failures) {
  // An error explains the many abandoned sections, which count as slow.
  Failures errors = failures;
  errors[FailureReason::taken] = errors[FailureReason::slow] = 0;
  if (std::ranges::max(errors.values) > 0) failures[FailureReason::slow] = 0;
  const auto most = std::ranges::max_element(failures.values);
  if (*most == 0) return std::nullopt;
  return static_cast<FailureReason>(most - failures.values.begin());
}

void ProbeHealth::fails(FailureReason reason, const std::string& message) {
  const TimePoint now = now_();
  report_(reason);
  calm_since_.reset();
  const bool begins = !said_;
  if (begins) failing_since_ = now;
  const bool too_soon = now - said_at_ < kBetweenReasons && said_ != FailureReason::slow;
  if (!begins && (said_ == reason || too_soon)) return;
  said_ = reason;
  said_at_ = now;
  const loadgen::FailureReasonInfo& info = loadgen::info_of(reason);
  say(fmt::format("{}failing: {}: {}", begins ? "" : "still ", info.name,
                  message.empty() ? info.meaning : message));
}

void ProbeHealth::works() {
  if (!std::exchange(proven_, true) && !said_) report_(std::nullopt);
  if (!said_) return;
  const TimePoint now = now_();
  if (!calm_since_) calm_since_ = now;
  if (now - *calm_since_ < calm_) return;
  said_.reset();
  report_(std::nullopt);
  say(fmt::format("working again after {:.0f} s", seconds(*calm_since_ - failing_since_)));
}

void ProbeHealth::say(const std::string& what) {
  console_.warn(
      fmt::format("{} {}: {}", rfc3339(std::chrono::system_clock::now()), strategy_, what));
}

Command probe_command() {
  return make_command<ProbeOptions>(
      {.task = kDecide,
       .summary = "Probe a live deployment at a low rate and serve /metrics.",
       .example = "lockbench probe redis-fenced --redis redis://host:6379 --rate 1"},
      probe);
}

}  // namespace lockbench::cli
