#include "loadgen/run/live_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <thread>

#include "loadgen/record/redis_counter.h"
#include "loadgen/run/named_load.h"
#include "loadgen/run/run_watcher.h"
#include "loadgen/run/service_recording.h"
#include "loadgen/run/stop_after.h"
#include "loadgen/run/warm_up.h"
#include "strategies/redis/client/shared_connections.h"

namespace lockbench::loadgen {
namespace {

constexpr Duration kConnectReportInterval = std::chrono::milliseconds(200);
constexpr Duration kSeriesInterval = std::chrono::seconds(1);
// A server's accept queue is short: with more at once, connections wait for retransmissions.
// Clients share connections to Redis only, whose queue is longer.
constexpr int kConnectingAtOnce = 64, kConnectingToRedisAtOnce = 511;
// How long a run may take to remove its keys: less after a stop, when somebody waits for the end.
constexpr Duration kCleaning = std::chrono::seconds(30),
                   kCleaningAfterStop = std::chrono::seconds(5);

Listing listing_of(const Descriptor& strategy) {
  const StoreKind* const kind = find_store_kind(strategy.backend);
  return kind == nullptr ? Listing::none : kind->listing;
}

std::uint64_t random_nonce() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

int nodes_of_quorum(const Descriptor& strategy, const Endpoints& endpoints) {
  if (strategy.traits.nodes <= 1) return 0;
  return static_cast<int>(urls_of(strategy, endpoints).size());
}

/// Tells the watcher that a run begins and, however it ends, that it ends.
class Watch {
 public:
  Watch(RunWatcher* watcher, const RunShared& run) : watcher_(watcher), run_(run) {
    if (watcher_ != nullptr) watcher_->run_begins(run_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() { end(nullptr); }

  void end(const results::Run* result) {
    if (watcher_ != nullptr) watcher_->run_ends(run_, result);
    watcher_ = nullptr;
  }

 private:
  RunWatcher* watcher_;
  const RunShared& run_;
};

/// Counts a client that works down when it has ended, however it ends.
class Working {
 public:
  Working(std::mutex& mutex, int& clients, std::condition_variable_any& changed)
      : mutex_(mutex), clients_(clients), changed_(changed) {}
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;
  ~Working() {
    {
      const std::scoped_lock lock(mutex_);
      --clients_;
    }
    changed_.notify_one();
  }

 private:
  std::mutex& mutex_;
  int& clients_;
  std::condition_variable_any& changed_;
};

}  // namespace

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
               fmt::format("lockbench:{}:{{{}:{}:", plan.run_id, strategy.name, progress.run),
           .nonce = env_->random(),
           .seed = plan.workload.seed + static_cast<std::uint64_t>(repetition) - 1,
           .make_env = plan.make_env,
           .recorder = Recorder(plan.workload.clients, nodes_of_quorum(strategy, plan.endpoints)),
           .services = {},
           .audit = Audit(plan.workload.key_count()),
           .handoff = HandoffTracker(plan.workload.key_count()),
           .used = UsedKeys(plan.workload.key_count() + plan.workload.clients),
           .demand = nullptr,
           .counter = nullptr,
           .schedule = nullptr},
      stores_(make_stores(strategy, plan.endpoints, plan.workload.strategy.command_timeout),
              listing_of(strategy)),
      resources_(plan, run_.strategy, client_threads_) {
  if (plan.workload.meet_every) {
    run_.meetings =
        std::make_unique<Meetings>(plan.workload.key_count(), *plan.workload.meet_every);
  }
  if (plan.workload.has_transactions() && plan.workload.lock_order == LockOrder::drawn) {
    run_.waits = std::make_unique<WaitGraph>(plan.workload.clients, strategy.traits.fair);
  }
  record_services(run_);
  if (const auto connections = plan.workload.connections) {
    const int threads = generator_threads(plan.workload, resources_.has_private_servers());
    run_.services.provide<redis::ConnectionFactory>(
        redis::make_sharing_factory({.connections = *connections, .threads = threads}));
  }
  if (plan.provide_services) plan.provide_services(run_.services);
}

tl::expected<results::Run, std::string> LiveRun::execute() {
  auto demand = make_demand(plan_.workload);
  if (!demand) return tl::unexpected(demand.error());
  run_.demand = *std::move(demand);
  if (auto made = make_counter(); !made) return tl::unexpected(made.error());
  Watch watch(plan_.watcher, run_);
  if (auto made = make_threads(); !made) return tl::unexpected(made.error());
  if (auto connected = start_clients(); !connected) {
    remove_keys();
    return tl::unexpected(connected.error());
  }

  results::Run result;
  stores_.begin();
  if (!plan_.faults.empty()) {
    faults_ = std::make_unique<FaultPlayer>(run_, plan_.faults, *plan_.fault_target, plan_.watcher);
  }
  if (plan_.before_load) plan_.before_load();
  const Duration offset_before = wall_clock_offset();
  const Duration suspended_before = BootClock::suspended();
  resources_.load_begins();
  SeriesSampler sampler(run_);
  const TimePoint ended_at = drive(sampler, result.series);
  resources_.load_ends();
  end_faults(result);
  drain();
  resources_.drained();
  if (plan_.after_load) plan_.after_load();
  sampler.complete(result.series.back());

  const TimePoint measured_until = std::min(ended_at, run_.load_end.load());
  count_never_begun(measured_until);
  for (const Duration waited : run_.handoff.unserved(measured_until)) {
    run_.recorder.histograms(Phase::measured)[Timing::handoff_cut].record(waited);
  }
  result.strategy = run_.strategy.name;
  result.backend = run_.strategy.backend;
  result.repetition = repetition_;
  result.load = load_of(run_.workload);
  result.warmup_seconds = seconds(std::min(ended_at, run_.measure_start.load()) - run_.load_start);
  summarise(run_, std::max(measured_until - run_.measure_start.load(), Duration::zero()), result);
  watch.end(&result);

  const RunStores::Usage usage = stores_.end();
  add_costs(usage, result);
  RunEvidence evidence = evidence_of(usage, ended_at);
  evidence.wall_clock_jump_seconds = seconds(wall_clock_offset() - offset_before);
  evidence.suspended_seconds = seconds(BootClock::suspended() - suspended_before);
  evidence.overflowed_samples = overflowed_samples(result);
  result.generator = generator_of(evidence);
  if (run_.demand_met && ended_at < run_.measure_start.load()) {
    result.generator.valid = false;
    result.generator.reasons.emplace_back(
        "the trace ended during the warm-up: use --warmup 0s or --trace-repeat");
  }
  if (plan_.run_over) plan_.run_over(result);
  remove_keys();
  return result;
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
                          .checks_fencing = plan_.workload.resource == Resource::redis_fenced,
                          .kept_for = kKeptFor + plan_.workload.warmup + plan_.workload.duration});
  if (!counter) return tl::unexpected(counter.error());
  run_.counter = std::move(*counter);
  return {};
}

tl::expected<void, std::string> LiveRun::make_threads() {
  const Workload& workload = plan_.workload;
  if (workload.what_clients_run_on() == ClientsOn::threads) return {};
  auto made = ClientThreads::of_fibers(
      generator_threads(workload, resources_.has_private_servers()), workload.stack_bytes);
  if (!made) return tl::unexpected(made.error());
  client_threads_ = *std::move(made);
  return {};
}

tl::expected<void, std::string> LiveRun::start_clients() {
  const int clients = plan_.workload.clients;
  progress_.clients = clients;
  clients_.reserve(static_cast<std::size_t>(clients));
  const int at_once = plan_.workload.connections ? kConnectingToRedisAtOnce : kConnectingAtOnce;
  std::string failed;
  for (int number = 0; number < clients && failed.empty() && !external_.stop_requested();
       ++number) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, external_,
                    [&] { return number - connected_ < at_once || !connect_error_.empty(); });
      failed = connect_error_;
    }
    if (!failed.empty() || external_.stop_requested()) break;
    if (number % 256 == 0)
      report(Progress::Phase::connecting, static_cast<double>(number) / clients);
    auto client = client_threads_.start(
        number, [this, number](const std::stop_token&) { run_client(number); },
        [this, number](const std::string& why) { client_failed(number, why); });
    if (client) {
      clients_.push_back(*std::move(client));
    } else {
      failed = fmt::format("client {} of {}: {}", number + 1, clients, client.error());
    }
  }
  if (failed.empty()) {
    if (auto connected = await_connected(); !connected) failed = connected.error();
  }
  if (failed.empty()) return {};
  run_.over.request_stop();
  // Whoever stops the run does not wait for answers that may never come.
  if (external_.stop_requested()) run_.abort.request_stop();
  gate_.request_stop();
  clients_.clear();
  return tl::unexpected(failed);
}

void LiveRun::run_client(int number) {
  Worker worker(run_, number);
  const StoreResult<void> connected = worker.connect();
  {
    const std::scoped_lock lock(mutex_);
    if (connected) {
      ++connected_;
      ++working_;
    } else if (connect_error_.empty()) {
      connect_error_ = connected.error().message;
    }
  }
  changed_.notify_one();
  if (!connected) return;
  const Working working(mutex_, working_, changed_);
  // Connecting, with the resolver and TLS, goes deeper than the load ever will.
  fibers::trim_stack();
  Carrier::current().wait(nullptr, TimePoint::max(), gate_.get_token());
  worker.work();
}

void LiveRun::client_failed(int number, const std::string& why) {
  const std::string line = fmt::format("client {} ended: {}", number + 1, why);
  run_.recorder.failure(line);
  run_.recorder.client(number).state.store(ClientState::idle, std::memory_order_relaxed);
  {
    const std::scoped_lock lock(mutex_);
    ++failed_;
    if (connect_error_.empty()) connect_error_ = line;
  }
  changed_.notify_one();
}

tl::expected<void, std::string> LiveRun::await_connected() {
  std::unique_lock lock(mutex_);
  const auto started = static_cast<int>(clients_.size());
  // Bounded: every client either connects or fails within the command timeout.
  const auto decided = [&] { return connected_ >= started || !connect_error_.empty(); };
  while (!decided() && !external_.stop_requested()) {
    changed_.wait_for(lock, external_, kConnectReportInterval, decided);
    const double done = static_cast<double>(connected_) / plan_.workload.clients;
    lock.unlock();
    report(Progress::Phase::connecting, done);
    lock.lock();
  }
  if (!connect_error_.empty()) return tl::unexpected(connect_error_);
  if (connected_ < plan_.workload.clients)
    return tl::unexpected<std::string>("interrupted while connecting");
  return {};
}

TimePoint LiveRun::drive(SeriesSampler& sampler, std::vector<results::SeriesPoint>& series) {
  const Workload& workload = plan_.workload;
  run_.load_start = env_->now();
  WarmUp warm_up(run_.load_start, workload.warmup, warms_until_steady());
  measure_from(warm_up.latest_end());
  run_.started.store(true, std::memory_order_release);
  if (workload.rate) {
    run_.schedule =
        std::make_unique<Schedule>(*workload.rate, workload.arrival, run_.load_start, run_.seed);
  }
  gate_.request_stop();
  if (faults_) faults_->start();

  TimePoint next_sample = next_sample_after(run_.load_start);
  TimePoint now = run_.load_start;
  bool over = false, done = false;
  while (!over) {
    {
      std::unique_lock lock(mutex_);
      const TimePoint wake_at = std::min(next_sample, warm_up.next_look().value_or(next_sample));
      changed_.wait_until(lock, external_, std::min(wake_at, run_.load_end.load()),
                          [this] { return all_done() || nobody_works(); });
      now = env_->now();
      // The client that ends the run leaves then, which notifies the runner.
      done = all_done();
      over = nobody_works() || now >= run_.load_end.load() || external_.stop_requested() || done;
    }
    const auto look = warm_up.next_look();
    if (look && now >= *look && warm_up.is_steady(now, run_.recorder.totals()[Count::sections]) &&
        now < run_.measure_start.load()) {
      measure_from(now);
      next_sample = now;
    }
    if (now >= next_sample) over = over || settled(now);
    if (over || now >= next_sample) {
      series.push_back(sampler.sample(now));
      progress_.sections += series.back().sections;
      progress_.sections_per_second = static_cast<double>(series.back().sections);
      progress_.failed += series.back().failed;
      note_failures();
      if (next_sample == run_.measure_start.load()) run_.audit.restart_streaks();
      next_sample = next_sample_after(next_sample);
    }
    if (over) {
      // Sampling came first, so that the last point shows who waits and holds; the clients have
      // worked on meanwhile.
      if (!done) now = env_->now();
      run_.over.request_stop();
    }
    report_load(now, over);
  }
  return now;
}

void LiveRun::note_failures() {
  const Counts totals = run_.recorder.totals();
  for (std::size_t i = 0; i < kFailureReasons.size(); ++i) {
    progress_.failures.values[i] = totals[count_of(static_cast<FailureReason>(i))];
  }
  progress_.messages = run_.recorder.latest_failures();
  progress_.stuck = run_.handoff.stuck();
}

bool LiveRun::warms_until_steady() const {
  // Faults strike at times that are set when the load starts.
  return plan_.warms_up && plan_.warms_up(run_.strategy) && plan_.faults.empty();
}

void LiveRun::measure_from(TimePoint when) {
  run_.measure_start = when;
  run_.load_end = when + plan_.workload.duration;
}

bool LiveRun::settled(TimePoint now) const {
  const Workload& workload = plan_.workload;
  return workload.settles_after && now >= run_.measure_start.load() + *workload.settles_after &&
         run_.recorder.totals()[Count::contended_grants] >= workload.contended_grants;
}

TimePoint LiveRun::next_sample_after(TimePoint sampled_at) const {
  const TimePoint next = sampled_at + kSeriesInterval;
  // No interval spans the end of the warm-up.
  const TimePoint measure_start = run_.measure_start;
  const bool crosses = sampled_at < measure_start && next > measure_start;
  return crosses ? measure_start : next;
}

void LiveRun::report_load(TimePoint now, bool over) {
  const TimePoint measure_start = run_.measure_start;
  if (now < measure_start) {
    const Duration warm = now - run_.load_start;
    report(Progress::Phase::warming_up, seconds(warm) / seconds(measure_start - run_.load_start));
    return;
  }
  // By time or by sections, whichever ends the run first.
  double done = seconds(now - measure_start) / seconds(plan_.workload.duration);
  if (plan_.workload.iterations) {
    done = std::max(done, static_cast<double>(run_.measured_sections.load()) /
                              static_cast<double>(*plan_.workload.iterations));
  }
  if (const auto& trace = plan_.workload.trace; trace && !trace->repeats) {
    done = std::max(done, static_cast<double>(run_.ended_of_trace.load()) /
                              static_cast<double>(trace->transactions));
  }
  report(over ? Progress::Phase::draining : Progress::Phase::measuring, std::min(done, 1.0));
}

void LiveRun::report(Progress::Phase phase, double done) {
  progress_.phase = phase;
  progress_.done = done;
  {
    const std::scoped_lock lock(mutex_);
    progress_.clients_connected = connected_;
  }
  observer_.on_progress(progress_);
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

void LiveRun::drain() {
  // Two commands under way, one after the other, each bounded by its own time-out.
  const TimePoint give_up_at = env_->now() + 2 * plan_.workload.strategy.command_timeout;
  {
    std::unique_lock lock(mutex_);
    while (working_ > 0 && env_->now() < give_up_at) changed_.wait_until(lock, give_up_at);
  }
  run_.abort.request_stop();
  clients_.clear();  // waits for their ends
}

void LiveRun::count_never_begun(TimePoint until) {
  if (!run_.schedule) return;
  // With nothing left to do, no further section was to begin.
  if (run_.demand_met) return;
  if (plan_.workload.iterations && run_.measured_sections >= *plan_.workload.iterations) return;
  // Due, but no client was free to begin them: they have waited since their intended start.
  const auto [due, longest] = run_.schedule->due_before(until);
  Recorder::Histograms& histograms = run_.recorder.histograms(Phase::measured);
  histograms[Timing::abandoned].record_evenly(longest, due);
  const Workload& workload = plan_.workload;
  if (workload.has_transactions()) {
    histograms[Timing::transaction_cut].record_evenly(longest, due);
  }
  // Their modes were never drawn: they have the load's shares. Those of a trace are not known.
  if (workload.has_shared_sections() && !workload.trace) {
    const auto shared =
        static_cast<std::uint64_t>(std::llround(static_cast<double>(due) * workload.shared_share));
    histograms[Timing::shared_cut].record_evenly(longest, shared);
    histograms[Timing::exclusive_cut].record_evenly(longest, due - shared);
  }
  histograms[Timing::schedule_lag].record_evenly(longest, due);
  run_.recorder.client(0).add_wait(Phase::measured, longest, true);
}

Duration LiveRun::wall_clock_offset() {
  return env_->wall_now().time_since_epoch() - env_->now().time_since_epoch();
}

std::optional<double> LiveRun::server_cpu_seconds(const RunStores::Usage& usage) const {
  // A server knows what it used itself; the testbed also knows it of those that do not say.
  const bool restarted = !usage.restarts.empty() || !usage.gone.empty();
  if (usage.cpu_seconds || restarted) return usage.cpu_seconds;
  return resources_.server_cpu_seconds();
}

void LiveRun::add_costs(const RunStores::Usage& usage, results::Run& result) const {
  const auto all_sections = static_cast<double>(run_.recorder.totals()[Count::sections]);
  if (all_sections == 0) return;
  const auto cpu_seconds = server_cpu_seconds(usage);
  if (cpu_seconds) result.server_cpu_seconds_per_section = *cpu_seconds / all_sections;
  if (const auto bytes = resources_.bytes()) {
    result.bytes_per_section = static_cast<double>(*bytes) / all_sections;
  }
}

RunEvidence LiveRun::evidence_of(const RunStores::Usage& usage, TimePoint ended_at) const {
  const Recorder::Histograms& histograms = run_.recorder.histograms(Phase::measured);
  RunEvidence evidence;
  resources_.add_to(evidence);
  evidence.wall_seconds = seconds(ended_at - run_.load_start);
  evidence.overrun_seconds = seconds(ended_at - run_.load_end.load());
  evidence.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  evidence.has_store = !stores_.empty();
  evidence.closed_loop = !run_.schedule;
  const auto servers = static_cast<double>(urls_of(run_.strategy, plan_.endpoints).size());
  if (const auto used = server_cpu_seconds(usage); used && servers > 0) {
    evidence.each_server_cpu_seconds = *used / servers;
  }
  // A fault keeps clients busy while it lasts: that is what is measured, and waits count from the
  // schedule anyway.
  evidence.schedule_lag = lag_before_faults_.value_or(histograms[Timing::schedule_lag].snapshot());
  evidence.wake_lag = histograms[Timing::wake_lag].snapshot();
  evidence.acquire = histograms[Timing::acquired].snapshot();
  evidence.restarted_servers = usage.gone;
  const bool restarts_expected =
      std::any_of(plan_.faults.begin(), plan_.faults.end(),
                  [](const Fault& fault) { return restarts_servers(fault.kind); });
  if (!restarts_expected) {
    evidence.restarted_servers.insert(evidence.restarted_servers.end(), usage.restarts.begin(),
                                      usage.restarts.end());
  }
  return evidence;
}

results::Generator LiveRun::generator_of(const RunEvidence& evidence) const {
  results::Generator generator = certify(evidence);
  const std::size_t threads = client_threads_.cpu_times().size();
  const bool on_fibers = threads > 0;
  generator.clients_on = to_string(on_fibers ? ClientsOn::fibers : ClientsOn::threads);
  generator.threads = on_fibers ? threads : static_cast<std::uint64_t>(plan_.workload.clients);
  generator.stack_high_water_bytes = client_threads_.stack_high_water_bytes();
  return generator;
}

void LiveRun::remove_keys() {
  if (run_.used.none()) return;
  // A stop that ended the run does not keep its keys; one that comes now does.
  const bool stopped = external_.stop_requested();
  const StopAfter limit(stopped ? kCleaningAfterStop : kCleaning,
                        stopped ? std::stop_token() : external_);
  const auto of_counter = run_.counter->remove_keys(limit.token());
  const auto of_locks = stores_.remove({.run_id = plan_.run_id,
                                        .used = run_.used,
                                        .name_of = [this](int key) { return run_.key(key); },
                                        .suffixes = run_.strategy.key_suffixes},
                                       limit.token());
  // What private servers keep ends with them.
  if (plan_.servers_stay && !plan_.servers_stay(run_.strategy)) return;
  std::set<std::string> reasons;
  for (const auto& removed : {of_counter, of_locks}) {
    if (!removed) reasons.insert(removed.error());
  }
  if (reasons.empty()) return;
  observer_.on_warning(
      fmt::format("keys of {} may be left behind under lockbench:{}: ({}); to remove them: {}",
                  run_.strategy.name, plan_.run_id, fmt::join(reasons, "; "), clean_command()));
}

std::string LiveRun::clean_command() const {
  std::string command = fmt::format("lockbench clean --run {}", plan_.run_id);
  const StoreKind* const kind = find_store_kind(run_.strategy.backend);
  if (kind != nullptr) command += fmt::format(" --{} {}", kind->name, kind->value_name);
  const bool counter = plan_.workload.resource != Resource::memory;
  if (counter && run_.strategy.backend != "redis") command += " --redis URL";
  return command;
}

}  // namespace lockbench::loadgen
