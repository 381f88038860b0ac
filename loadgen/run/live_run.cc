#include "loadgen/run/live_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "loadgen/run/local_crew.h"
#include "loadgen/run/run_stores.h"

namespace lockbench::loadgen {
namespace {

constexpr Duration kSeriesInterval = std::chrono::seconds(1);
// The shortest warm-up of servers that get faster while they run.
constexpr Duration kWarmUpOfServers = std::chrono::seconds(3);
// How long a run may take to remove its keys; less after a stop, as a user may be waiting.
constexpr Duration kCleaning = std::chrono::seconds(30),
                   kCleaningAfterStop = std::chrono::seconds(5);
// A launcher of several processes kills them a second after a stop.
constexpr Duration kDrainAfterStop = std::chrono::milliseconds(80);

/// From the plan's nonce; random without one.
std::uint64_t nonce_of(const RunPlan& plan, int number) {
  if (plan.nonce) return Random(*plan.nonce, static_cast<std::uint64_t>(number))();
  return random_seed();
}

class LiveRun {
 public:
  LiveRun(const RunPlan& plan, const Descriptor& strategy, int repetition, const Progress& progress,
          ProgressObserver& observer, std::stop_token external, JointRun* joint)
      : plan_(plan),
        repetition_(repetition),
        progress_(progress),
        observer_(observer),
        external_(std::move(external)),
        joint_(joint),
        env_(plan.make_env(nonce_of(plan, progress.run))),
        run_(make_run(plan, strategy, repetition, progress.run,
                      joint ? joint->share() : Share{.clients = plan.workload.clients}, *env_)),
        stores_(plan, strategy),
        resources_(plan, run_),
        crew_(run_, *env_, external_) {}
  LiveRun(const LiveRun&) = delete;
  LiveRun& operator=(const LiveRun&) = delete;
  ~LiveRun() { end_watch(nullptr); }

  tl::expected<results::Run, std::string> execute() {
    watcher_ = plan_.watcher;
    if (watcher_ != nullptr) watcher_->run_begins(run_);
    auto begun = prepare();
    if (begun) {
      if (run_.share.rank == 0) stores_.begin();
      if (!plan_.faults.empty()) {
        faults_ =
            std::make_unique<FaultPlayer>(run_, plan_.faults, *plan_.fault_target, plan_.watcher);
      }
      if (plan_.before_load) plan_.before_load();
      if (joint_) begun = joint_->start().map([this](TimePoint start) { agreed_start_ = start; });
    }
    if (!begun) {
      crew_.call_off();
      remove_keys(run_);
      return tl::unexpected(begun.error());
    }
    results::Run result;
    wall_clock_before_ = wall_clock_offset();
    suspended_before_ = BootClock::suspended();
    resources_.load_begins();
    SeriesSampler sampler(run_);
    const TimePoint ended_at = drive(sampler, result.series);
    resources_.load_ends();
    // Waits that a fault still holds up can end only after it.
    end_faults(result);
    run_out();
    drain();
    sampler.complete(result.series.back());
    PartOfRun part = part_of(result.series, ended_at);
    if (!joint_) {
      conclude(run_, part.measured, ended_at, result);
      return result;
    }
    part.complete = true;
    part.generator = own_generator(ended_at);
    const std::unique_ptr<WholeRun> whole = joint_->gather(part);
    if (!whole) return result;
    result.series = std::move(whole->series);
    conclude(*whole->run, whole->measured, ended_at, result);
    return result;
  }

 private:
  /// Tells the watcher once that the run ends, in any way.
  void end_watch(const results::Run* result) {
    if (RunWatcher* const told = std::exchange(watcher_, nullptr)) told->run_ends(run_, result);
  }

  /// Prepares the run, until all clients are connected.
  tl::expected<void, std::string> prepare() {
    const std::string not_noted = run_.share.rank == 0 ? note_keys() : "";
    auto ready = equip(plan_, *env_, run_);
    if (ready && !Carrier::current().shared()) {
      const int threads = generator_threads(plan_.workload, resources_.has_private_servers());
      const auto note_late_turn = [this](Duration late) {
        if (!run_.started.load(std::memory_order_acquire)) return;
        run_.recorder.histograms(run_.phase_at(BootClock::now()))[Timing::turn_lag].record(late);
      };
      ready =
          fibers::Pool::make(threads, {}, note_late_turn)
              .map([this](std::unique_ptr<fibers::Pool> made) { run_.threads = std::move(made); });
    }
    if (ready) {
      const double clients = progress_.clients = run_.share.count();
      ready = crew_.connect([&](int connected) {
        progress_.clients_connected = connected;
        report(Progress::Phase::connecting, connected / std::max(1.0, clients));
      });
    }
    if (ready && !not_noted.empty()) observer_.on_warning(not_noted);
    return joint_ ? joint_->ready(ready) : ready;
  }

  /// Lets the waits of the measured window end under the same load, and then ends the load.
  void run_out() {
    crew_.run_out(run_.measure_end.load() + plan_.workload.longest_run_out());
    cut_off(env_->now());
  }

  /// Cuts off the waits that are left. The first call counts.
  void cut_off(TimePoint now) {
    if (run_.load_end.load() == TimePoint::max()) run_.load_end = now;
    run_.over.request_stop();
  }

  /// Lets the clients end, and counts the sections that they did not begin.
  void drain() {
    const bool hurried = joint_ && external_.stop_requested();
    crew_.drain(hurried ? std::optional(kDrainAfterStop) : std::nullopt);
    resources_.drained();
    const TimePoint cut = run_.load_end;
    crew_.count_never_begun(cut);
    for (const Duration waited : run_.handoff.unserved(cut)) {
      run_.recorder.histograms(run_.phase_at(cut - waited))[Timing::handoff_cut].record(waited);
    }
  }

  /// This process's part of a joint run. `ended_at`: the end of its load, or now.
  PartOfRun part_of(const std::vector<results::SeriesPoint>& series, TimePoint ended_at) {
    const TimePoint measured_until = std::min(ended_at, run_.measure_end.load());
    return {.run = run_,
            .series = series,
            .measured = std::max(measured_until - run_.measure_start.load(), Duration::zero()),
            .wall_seconds = seconds(ended_at - run_.load_start),
            .late = late_};
  }

  /// Audits the run and makes its result.
  void conclude(const RunShared& all, Duration measured, TimePoint ended_at, results::Run& result) {
    // Read before the audit, which reads all counters and so costs the servers CPU too.
    const RunStores::Usage usage = stores_.end();
    if (plan_.after_load) plan_.after_load();
    result.repetition = repetition_;
    result.warmup_seconds =
        seconds(std::min(ended_at, run_.measure_start.load()) - run_.load_start);
    summarise(all, measured, result);
    end_watch(&result);

    // The cost of a section to the servers and the connections to them.
    const auto sections = static_cast<double>(all.recorder.total(Count::sections));
    if (sections > 0) {
      if (const auto cpu = server_cpu_seconds(usage)) {
        result.server_cpu_seconds_per_section = *cpu / sections;
      }
      // On the lock's own server, the audit's counter would count too.
      if (usage.commands && plan_.workload.resource == Resource::memory) {
        result.server_commands_per_section = *usage.commands / sections;
      }
      if (const auto bytes = resources_.bytes()) {
        result.bytes_per_section = static_cast<double>(*bytes) / sections;
      }
    }
    RunEvidence evidence = whole_evidence(all, usage, ended_at);
    evidence.wall_clock_jump_seconds = seconds(wall_clock_offset() - wall_clock_before_);
    evidence.suspended_seconds = seconds(BootClock::suspended() - suspended_before_);
    evidence.overflowed_samples = overflowed_samples(result);
    if (joint_) joint_->add_to(evidence);
    result.generator = generator_of(evidence);
    if (run_.demand_met && ended_at < run_.measure_start.load()) {
      result.generator.valid = false;
      result.generator.reasons.emplace_back("the trace ended during the warm-up: use --warmup 0s");
    }
    if (joint_) joint_->complete(result);
    if (plan_.run_over) plan_.run_over(result);
    remove_keys(all);
  }

  /// From the start of the load to the end of the measured window; takes at least one sample for
  /// the series. Returns when the window ended.
  TimePoint drive(SeriesSampler& sampler, std::vector<results::SeriesPoint>& series) {
    const Workload& workload = plan_.workload;
    run_.load_start = agreed_start_.value_or(env_->now());
    if (agreed_start_) {
      env_->wait(nullptr, *agreed_start_, external_);
      late_ = std::max(Duration::zero(), env_->now() - *agreed_start_);
    }
    Duration warmup = workload.warmup;
    const bool gets_faster = !joint_ && plan_.warms_up && plan_.warms_up(run_.strategy);
    if (gets_faster && warmup > Duration::zero()) warmup = std::max(warmup, kWarmUpOfServers);
    run_.measure_start = run_.load_start + warmup;
    run_.measure_end = run_.measure_start.load() + workload.duration;
    run_.started.store(true, std::memory_order_release);
    crew_.begin();
    progress_.clients_connected = run_.share.count();
    if (faults_) faults_->start();

    TimePoint next_sample = next_sample_after(run_.load_start);
    TimePoint now = run_.load_start;
    bool over = false, done = false;
    while (!over) {
      over = crew_.wait(std::min(next_sample, run_.measure_end.load()));
      now = env_->now();
      // A client that ended the run also left, which notified the runner.
      done = run_.over.stop_requested();
      const bool cut = over || done;
      over = cut || now >= run_.measure_end.load() || (now >= next_sample && settled(now));
      if (over || now >= next_sample) {
        const double sampled_at = series.empty() ? 0 : series.back().t;
        series.push_back(sampler.sample(now));
        const results::SeriesPoint& latest = series.back();
        progress_.sections += latest.sections;
        if (const double length = latest.t - sampled_at; length > 0) {
          progress_.sections_per_second = static_cast<double>(latest.sections) / length;
        }
        progress_.failed += latest.failed;
        const Counts totals = run_.recorder.totals();
        for (std::size_t i = 0; i < kFailureReasons.size(); ++i) {
          progress_.failures.values[i] = totals[count_of(static_cast<FailureReason>(i))];
        }
        progress_.messages = run_.recorder.latest_failures();
        progress_.stuck = run_.handoff.stuck();
        if (next_sample == run_.measure_start.load()) run_.audit.restart_streaks();
        next_sample = next_sample_after(next_sample);
        if (joint_) {
          joint_->note(part_of(series, now), sampler.latest(), external_.stop_requested());
        }
      }
      if (over) {
        // Sampled before this, so that the last point shows waiting and holding clients; the
        // clients have worked on meanwhile.
        if (!done) now = env_->now();
        if (now < run_.measure_end.load()) run_.measure_end = now;
        if (cut) cut_off(now);
      }
      report_load(now, over);
    }
    return now;
  }

  bool settled(TimePoint now) const {
    const Workload& workload = plan_.workload;
    // Not for ranks, which end at an agreed time.
    return !joint_ && workload.settles_after &&
           now >= run_.measure_start.load() + *workload.settles_after &&
           run_.recorder.total(Count::contended_grants) >= workload.contended_grants;
  }

  TimePoint next_sample_after(TimePoint sampled_at) const {
    const TimePoint next = sampled_at + kSeriesInterval;
    // No interval spans the end of the warm-up.
    const TimePoint measure_start = run_.measure_start;
    const bool crosses = sampled_at < measure_start && next > measure_start;
    return crosses ? measure_start : next;
  }

  void report_load(TimePoint now, bool over) {
    const TimePoint measure_start = run_.measure_start;
    if (now < measure_start) {
      const Duration warm = now - run_.load_start;
      report(Progress::Phase::warming_up, seconds(warm) / seconds(measure_start - run_.load_start));
      return;
    }
    // By time or by sections, as the earlier of both ends the run.
    double done = seconds(now - measure_start) / seconds(plan_.workload.duration);
    if (plan_.workload.iterations) {
      done = std::max(done, static_cast<double>(run_.measured_sections.load()) /
                                static_cast<double>(*plan_.workload.iterations));
    }
    if (const auto& trace = plan_.workload.trace; trace) {
      done = std::max(done, static_cast<double>(run_.ended_of_trace.load()) /
                                static_cast<double>(trace->transactions));
    }
    report(over ? Progress::Phase::draining : Progress::Phase::measuring, std::min(done, 1.0));
  }

  void report(Progress::Phase phase, double done) {
    progress_.phase = phase;
    progress_.done = done;
    observer_.on_progress(progress_);
  }

  void end_faults(results::Run& result) {
    if (!faults_) return;
    FaultPlayer::Report report = faults_->finish();
    result.faults = std::move(report.marks);
    before_faults_ = std::move(report.before);
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

  /// Time of day minus monotonic clock: constant, unless a clock is set.
  Duration wall_clock_offset() {
    return env_->wall_now().time_since_epoch() - env_->now().time_since_epoch();
  }

  /// Of the lock's servers; nothing if unknown.
  std::optional<double> server_cpu_seconds(const RunStores::Usage& usage) const {
    // Most servers report their own CPU; for the others, the testbed reads it.
    const bool restarted = !usage.restarts.empty() || !usage.gone.empty();
    if (usage.cpu_seconds || restarted) return usage.cpu_seconds;
    return resources_.server_cpu_seconds();
  }

  /// From the clients' records, this process and its machine.
  RunEvidence evidence_of(const RunShared& run, TimePoint ended_at) const {
    const Recorder::Histograms& histograms = run.recorder.histograms(Phase::measured);
    RunEvidence evidence;
    evidence.closed_loop = !run.workload.rate;
    evidence.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    evidence.has_store = !urls_of(run.strategy, run.endpoints).empty();
    evidence.wake_lag = histograms[Timing::wake_lag].snapshot();
    evidence.turn_lag = histograms[Timing::turn_lag].snapshot();
    // A renewal that is repeated after a failure counts from its first due time.
    if (plan_.faults.empty() && run.recorder.total(Count::renewals_failed) == 0) {
      evidence.renewal_slip = histograms[Timing::renewal_slip].snapshot();
      evidence.renewal_duration = histograms[Timing::renewal_duration].snapshot();
    }
    evidence.ttl = run.workload.ttl;
    // A control that reads nothing waits for its store only when it writes.
    const bool only_writes = run_.strategy.traits.updates && run_.strategy.acquire_commands.empty();
    evidence.acquire = histograms[only_writes ? Timing::release : Timing::acquired].snapshot();
    evidence.echo = histograms[Timing::echo].snapshot();
    evidence.wall_seconds = seconds(ended_at - run_.load_start);
    evidence.overrun_seconds = seconds(ended_at - run_.measure_end.load());
    evidence.stood_still = crew_.stood_still();
    resources_.add_to(evidence);
    return evidence;
  }

  /// The same for all processes, and for the servers.
  RunEvidence whole_evidence(const RunShared& all, const RunStores::Usage& usage,
                             TimePoint ended_at) const {
    RunEvidence evidence = evidence_of(all, ended_at);
    const auto servers = static_cast<double>(urls_of(run_.strategy, plan_.endpoints).size());
    if (const auto used = server_cpu_seconds(usage); used && servers > 0) {
      evidence.each_server_cpu_seconds = *used / servers;
    }
    // Only up to the first fault: faults keep clients busy, which is part of the measurement, and
    // waits count from the schedule anyway.
    evidence.schedule_lag =
        before_faults_ ? before_faults_->lag
                       : all.recorder.histograms(Phase::measured)[Timing::schedule_lag].snapshot();
    evidence.scheduled_acquire = before_faults_ ? before_faults_->acquire : evidence.acquire;
    if (!plan_.stops_servers) evidence.restarted_servers = usage.gone;
    if (!strikes_servers(plan_.faults)) {
      evidence.restarted_servers.insert(evidence.restarted_servers.end(), usage.restarts.begin(),
                                        usage.restarts.end());
    }
    return evidence;
  }

  /// The judgement on the generator, and what the clients ran on.
  results::Generator generator_of(const RunEvidence& evidence) const {
    results::Generator generator = certify(evidence);
    generator.clients_on = "fibers";
    generator.threads = run_.threads ? static_cast<std::uint64_t>(run_.threads->threads()) : 1;
    return generator;
  }

  /// Of this process alone, in a run of several.
  results::Generator own_generator(TimePoint ended_at) const {
    if (run_.share.count() == 0) return {};
    RunEvidence evidence = evidence_of(run_, ended_at);
    // The load, the servers and other programs are judged for all processes together: a single one
    // cannot tell other programs from its neighbours.
    const auto busiest = std::exchange(evidence.busiest_thread_seconds, std::nullopt);
    evidence.private_cpu_seconds.reset();
    if (!joint_->judges_machine()) evidence.machine = {};
    // A process that is told to end now is always late.
    if (external_.stop_requested()) evidence.overrun_seconds = 0;
    results::Generator generator = generator_of(evidence);
    if (busiest && evidence.wall_seconds > 0) {
      generator.busiest_thread_share = *busiest / evidence.wall_seconds;
    }
    return generator;
  }

  /// Whether keys left in the servers outlive them.
  bool keys_stay() const { return !plan_.servers_stay || plan_.servers_stay(run_.strategy); }

  /// Notes in the stores which keys the run will use, so that a later run removes them if this one
  /// is killed. Returns a warning if it cannot.
  std::string note_keys() {
    if (!keys_stay()) return {};
    // Clients may take long to connect, and a run to end.
    constexpr Duration kAround = std::chrono::hours(1);
    const Workload& workload = plan_.workload;
    const Duration longest = workload.warmup + workload.duration + kAround;
    const auto until = env_->wall_now() + std::chrono::duration_cast<WallTime::duration>(longest);
    const auto noted = stores_.begin_keys(run_.key_prefix, until, external_);
    if (noted) return {};
    return fmt::format(
        "the keys of {} are not noted in the store: if this run is killed, they stay until "
        "lockbench clean --run {} ({})",
        run_.strategy.name, plan_.run_id, noted.error().message);
  }

  /// Removes the run's keys from the stores, within a bounded time.
  void remove_keys(const RunShared& all) {
    // A stop that ended the run does not prevent this; a stop during it ends it.
    const bool stopped = external_.stop_requested();
    const StopAfter limit(stopped ? kCleaningAfterStop : kCleaning,
                          stopped ? std::stop_token() : external_);
    if (all.used.none()) {
      (void)stores_.end_keys(run_.key_prefix, limit.token());  // else a later run forgets the note
      return;
    }
    const auto of_counter = all.counter->remove_keys(limit.token());
    const auto of_locks = stores_.remove(all, plan_.run_id, limit.token());
    if (!keys_stay()) return;
    std::set<std::string> reasons;
    for (const auto& removed : {of_counter, of_locks}) {
      if (!removed) reasons.insert(removed.error());
    }
    if (reasons.empty()) {
      const auto ended = stores_.end_keys(run_.key_prefix, limit.token());
      if (!ended) reasons.insert(ended.error().message);
    }
    if (reasons.empty()) {
      if (external_.stop_requested()) return;
      const auto removed = stores_.remove_old_runs(external_);
      if (!removed && !external_.stop_requested()) {
        observer_.on_warning(removed.error().message);
      }
      return;
    }
    std::string command = fmt::format("lockbench clean --run {}", plan_.run_id);
    const StoreKind* const kind = find_store_kind(run_.strategy.backend);
    if (kind != nullptr) command += fmt::format(" --{} {}", kind->name, kind->value_name);
    const bool counter = plan_.workload.resource != Resource::memory;
    if (counter && !store_traits(run_.strategy.backend).keeps_counter) command += " --redis URL";
    observer_.on_warning(
        fmt::format("keys of {} may be left behind under lockbench:{}: ({}); to remove them: {}",
                    run_.strategy.name, plan_.run_id, fmt::join(reasons, "; "), command));
  }

  const RunPlan& plan_;
  const int repetition_;
  Progress progress_;
  ProgressObserver& observer_;
  const std::stop_token external_;
  JointRun* const joint_;  ///< null: this process has all clients
  RunWatcher* watcher_ = nullptr;

  std::unique_ptr<Env> env_;
  RunShared run_;
  RunStores stores_;
  ResourceMeter resources_;
  LocalCrew crew_;  ///< its clients end before anything that they use is destroyed
  std::optional<TimePoint> agreed_start_;
  Duration late_{};  ///< how late it began the load, compared with the agreed start
  Duration wall_clock_before_{}, suspended_before_{};  ///< before the load
  std::optional<FaultPlayer::Before> before_faults_;
  std::unique_ptr<FaultPlayer> faults_;  ///< last: heals before the clients are joined
};

}  // namespace

tl::expected<results::Run, std::string> make_live_run(
    const RunPlan& plan, const Descriptor& strategy, int repetition, const Progress& progress,
    ProgressObserver& observer, const std::stop_token& external, JointRun* joint) {
  return LiveRun(plan, strategy, repetition, progress, observer, external, joint).execute();
}

}  // namespace lockbench::loadgen
