#include "loadgen/run/live_run.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "loadgen/record/certificate.h"
#include "loadgen/record/redis_counter.h"
#include "loadgen/run/run_watcher.h"
#include "loadgen/run/service_world.h"

namespace lockbench::loadgen {
namespace {

double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto to_seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return to_seconds(usage.ru_utime) + to_seconds(usage.ru_stime);
}

std::uint64_t random_nonce() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

int nodes_of_quorum(const Descriptor& strategy, const Endpoints& endpoints) {
  if (strategy.traits.nodes <= 1) return 0;
  return static_cast<int>(urls_of(strategy, endpoints).size());
}

std::uint64_t overflow_of(const results::Run& run) {
  std::uint64_t overflow = 0;
  for (const results::Distribution* distribution :
       {&run.acquire, &run.hold, &run.release, &run.handoff, &run.schedule_lag,
        &run.loss_to_knowledge}) {
    overflow += distribution->overflow;
  }
  if (run.renewal) {
    overflow +=
        run.renewal->duration.overflow + run.renewal->slip.overflow + run.renewal->margin.overflow;
  }
  if (run.quorum) overflow += run.quorum->validity.overflow;
  if (run.replication) overflow += run.replication->wait.overflow;
  return overflow;
}

}  // namespace

/// Tells the watcher of one run, whatever its end.
class LiveRun::Watch {
 public:
  Watch(RunWatcher* watcher, const RunShared& run) : watcher_(watcher), run_(run) {
    if (watcher_ != nullptr) watcher_->run_begins(run_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() { tell(nullptr); }

  void end(const results::Run& result) { tell(&result); }

 private:
  void tell(const results::Run* result) {
    if (watcher_ != nullptr) watcher_->run_ends(run_, result);
    watcher_ = nullptr;
  }

  RunWatcher* watcher_;
  const RunShared& run_;
};

LiveRun::LiveRun(const RunPlan& plan, const Descriptor& strategy, int repetition,
                 const Progress& progress, ProgressObserver& observer, std::stop_token external)
    : plan_(plan),
      repetition_(repetition),
      progress_(progress),
      observer_(observer),
      external_(std::move(external)),
      env_(plan.make_env(random_nonce())),
      run_{.strategy = strategy,
           .workload = plan.workload,
           .endpoints = plan.endpoints,
           .key_prefix =
               fmt::format("lockbench:{}:{{{}:{}:", plan.run_id, strategy.name, repetition),
           .nonce = env_->random(),
           .seed = plan.workload.seed + static_cast<std::uint64_t>(repetition) - 1,
           .make_env = plan.make_env,
           .recorder = Recorder(plan.workload.clients, nodes_of_quorum(strategy, plan.endpoints)),
           .services = {},
           .audit = Audit(plan.workload.key_count()),
           .handoff = HandoffTracker(plan.workload.key_count()),
           .keys = KeyChooser(plan.workload.key_count(), plan.workload.key_skew),
           .counter = nullptr,
           .schedule = nullptr},
      housekeeping_(make_stores(strategy, plan.endpoints, plan.workload.strategy.command_timeout)) {
  provide_service_worlds(run_);
  if (plan.provide_services) plan.provide_services(run_.services);
}

tl::expected<results::Run, std::string> LiveRun::execute() {
  if (auto made = make_counter(); !made) return tl::unexpected(made.error());
  Watch watch(plan_.watcher, run_);
  if (auto connected = start_clients(); !connected) return tl::unexpected(connected.error());

  results::Run result;
  RunEvidence evidence;
  housekeeping_.begin();
  if (!plan_.faults.empty()) {
    faults_ = std::make_unique<FaultPlayer>(run_, plan_.faults, *plan_.fault_target, plan_.watcher);
  }
  if (plan_.before_load) plan_.before_load();
  const Duration strayed_before = wall_clock_offset();
  const double cpu_before = own_cpu_seconds();
  SeriesSampler sampler(run_);
  const TimePoint ended_at = drive(sampler, result.series);
  evidence.cpu_seconds = own_cpu_seconds() - cpu_before;
  end_faults(result);
  drain();
  if (plan_.after_load) plan_.after_load();
  sampler.complete(result.series.back());

  const TimePoint measured_until = std::min(ended_at, run_.load_end);
  count_never_begun(measured_until);
  result.strategy = run_.strategy.name;
  result.backend = run_.strategy.backend;
  result.repetition = repetition_;
  summarise(run_, std::max(measured_until - run_.measure_start, Duration::zero()), result);
  watch.end(result);

  const Housekeeping::Account account = housekeeping_.end();
  std::uint64_t all_sections = 0;
  for (const Phase phase : kPhases) {
    all_sections += run_.recorder.totals(phase)[Count::sections];
  }
  if (account.cpu_seconds && all_sections > 0) {
    result.server_cpu_seconds_per_section =
        *account.cpu_seconds / static_cast<double>(all_sections);
  }
  evidence.restarted_servers = account.gone;
  if (!restarts_expected()) {
    evidence.restarted_servers.insert(evidence.restarted_servers.end(), account.restarts.begin(),
                                      account.restarts.end());
  }
  evidence.wall_seconds = seconds(ended_at - run_.load_start);
  evidence.overrun_seconds = seconds(ended_at - run_.load_end);
  evidence.wall_clock_jump_seconds = seconds(wall_clock_offset() - strayed_before);
  evidence.overflowed_samples = overflow_of(result);
  complete_evidence(evidence);
  result.generator = certify(evidence);
  remove_keys();
  return result;
}

void LiveRun::end_faults(results::Run& result) {
  if (!faults_) return;
  FaultPlayer::Report report = faults_->finish();
  result.faults = std::move(report.marks);
  lag_before_faults_ = std::move(report.lag_before);
  if (!external_.stop_requested()) {
    for (const std::string& fault : report.never_struck) {
      observer_.on_warning(fmt::format("fault {}: the run of {} was over before it could strike",
                                       fault, run_.strategy.name));
    }
  }
  for (const std::string& line : report.failures) {
    observer_.on_warning(fmt::format("{}: {}", run_.strategy.name, line));
    run_.recorder.failure(line);
  }
}

bool LiveRun::restarts_expected() const {
  return std::any_of(plan_.faults.begin(), plan_.faults.end(),
                     [](const Fault& fault) { return restarts_servers(fault.kind); });
}

Duration LiveRun::wall_clock_offset() {
  return env_->wall_now().time_since_epoch() - env_->now().time_since_epoch();
}

void LiveRun::complete_evidence(RunEvidence& evidence) const {
  const Recorder::Histograms& histograms = run_.recorder.histograms(Phase::measured);
  evidence.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  evidence.has_store = housekeeping_.has_store();
  // With a fault clients are busy for as long as it lasts: that is what is measured, and waits
  // count from the schedule.
  evidence.schedule_lag = lag_before_faults_.value_or(histograms.schedule_lag.snapshot());
  evidence.wake_lag = histograms.wake_lag.snapshot();
  evidence.acquire = histograms.acquire_with(AcquireOutcome::acquired).snapshot();
}

tl::expected<void, std::string> LiveRun::make_counter() {
  if (plan_.workload.resource == Resource::memory) {
    run_.counter = make_memory_counter(plan_.workload.key_count());
    return {};
  }
  const auto endpoint = redis::parse_endpoint(plan_.counter_url);
  if (!endpoint) return tl::unexpected(endpoint.error());
  auto counter =
      make_redis_counter({.connections = run_.services.get_or_make<redis::ConnectionFactory>(
                              redis::make_hiredis_factory),
                          .endpoint = *endpoint,
                          .command_timeout = plan_.workload.strategy.command_timeout,
                          .env = *env_,
                          .keys = plan_.workload.key_count(),
                          .key_name = [this](int key) { return run_.key(key) + ":counter"; },
                          .checks_fencing = plan_.workload.resource == Resource::redis_fenced});
  if (!counter) return tl::unexpected(counter.error());
  run_.counter = std::move(*counter);
  return {};
}

void LiveRun::remove_keys() {
  std::set<std::string> said;
  const auto warn = [&](const std::string& why) {
    if (!said.insert(why).second) return;
    observer_.on_warning(fmt::format("keys of {} may be left behind under lockbench:{}: ({})",
                                     run_.strategy.name, plan_.run_id, why));
  };
  if (auto removed = run_.counter->remove_keys(); !removed) warn(removed.error());
  const auto removed = housekeeping_.remove_keys(
      plan_.workload.key_count(), [this](int key) { return run_.key(key); },
      run_.strategy.key_suffixes);
  if (!removed) warn(removed.error());
  if (const auto rest = housekeeping_.remove_run(plan_.run_id); !rest) warn(rest.error());
}

}  // namespace lockbench::loadgen
