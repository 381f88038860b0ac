#include <algorithm>
#include <chrono>
#include <mutex>
#include <random>
#include <set>

#include "cli/commands/commands.h"
#include "cli/commands/measurement.h"
#include "cli/commands/probe_health.h"
#include "cli/commands/probe_options.h"
#include "cli/console/session.h"
#include "loadgen/run/worker.h"
#include "strategies/store.h"
#include "strategies/thread.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using loadgen::FailureReason;

// Where /metrics is served on the loopback without --metrics-listen.
constexpr std::uint16_t kPort = 9465;
// One section in so many holds its lock, or fewer if a lock would otherwise always be held.
constexpr double kSectionsForAMeeting = 10;
// A probe is a sequence of runs of this length, so that the records of a run stay small.
constexpr Duration kRound = 10min;
// Between two reports of a run's progress, and how late one may be.
constexpr Duration kBetweenProgress = 1s, kLateProgress = 1500ms;
// Between attempts to reach a store.
constexpr WaitPolicy kReconnecting = {.kind = WaitKind::backoff, .min = 200ms, .max = 10s};
// A strategy counts as working again after so long without a failure, or longer (see calm_of).
constexpr Duration kCalm = 5s;
// Between readings of the files with the servers' URLs.
constexpr Duration kBetweenReadings = 10s;
// Between new connections of a strategy. Clients keep theirs, and would not notice that others
// cannot connect.
constexpr Duration kBetweenConnections = 15s;
// A restart of the server explains what is found within this time.
constexpr Duration kAfterRestart = 30s;

Duration to_duration(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

/// What the probers of one command share. Thread-safe.
struct Common {
  const ProbeOptions& options;
  exporter::RunMetrics& metrics;
  Console& console;
  std::optional<TimePoint> until;
  std::mutex mutex{};
  std::set<std::string> warned{};

  /// Several strategies find the same about their server.
  void warn_once(const std::string& line) {
    const std::scoped_lock lock(mutex);
    if (warned.insert(line).second) console.warn("warning: " + line);
  }
};

/// "host:6379,host2:6379"
std::string addresses_of(std::string_view backend, const std::vector<std::string>& urls) {
  const StoreKind& kind = *find_store_kind(backend);
  return fmt::format(
      "{}",
      fmt::join(results::each_of(
                    urls, [&](const std::string& url) { return kind.display(url).value_or("?"); }),
                ","));
}

/// By then each lock has been tried again.
Duration calm_of(const loadgen::Workload& workload) {
  return std::max(kCalm, to_duration(workload.key_count() / *workload.rate));
}

/// Probes one strategy, on its own thread, until --duration is over or a stop.
class Prober : loadgen::ProgressObserver, loadgen::RunWatcher {
 public:
  Prober(loadgen::RunPlan plan, Selected selected, Common& common)
      : plan_(std::move(plan)),
        selected_(selected),
        common_(common),
        health_(strategy().name, calm_of(plan_.workload), common.console,
                [this](std::optional<FailureReason> reason) { tell(reason); }),
        urls_(common.options.servers_of(strategy().backend)),
        next_connection_(TimePoint::clock::now() + kBetweenConnections) {
    plan_.watcher = this;
  }

  void probe(const std::stop_token& stop) {
    const auto env = make_system_env(random_seed());
    std::uint32_t failed_attempts = 0;
    while (!stop.stop_requested() && (!common_.until || env->now() < *common_.until)) {
      const TimePoint began = env->now();
      std::string why = reach(stop);
      if (skipped_) return;
      if (why.empty()) why = round(stop);
      if (why.empty() || stop.stop_requested()) {
        failed_attempts = 0;
        continue;
      }
      had_errors_ = true;
      health_.on_unreachable(why);
      const Duration tried = env->now() - began;
      const TimePoint again = env->now() + kReconnecting.delay(failed_attempts++, *env);
      env->wait(nullptr, common_.until ? std::min(again, *common_.until) : again, stop);
      // Not the time in which the process stood still.
      note_outage(why, tried, std::min(env->now(), again) - began);
    }
  }

  /// Call if its thread could not start, or failed.
  void give_up(const std::string& why) {
    gave_up_ = true;
    health_.on_unreachable(why);
  }
  bool gave_up() const { return gave_up_; }
  /// Why its servers cannot have this strategy, which was not named.
  const std::optional<std::string>& skipped() const { return skipped_; }

  bool broken() const { return broken_; }
  /// "redis-fenced: two holders at once: 1", over all rounds.
  std::string what_broke() const {
    return fmt::format("{}: {}", strategy().name, violations_.to_string());
  }
  /// In a section, an outage, or a new connection.
  bool had_errors() const { return had_errors_; }

 private:
  const Descriptor& strategy() const { return *plan_.strategies.front(); }

  /// The URLs of its servers as the files have them now; none if these cannot be read.
  std::vector<std::string> given_urls() const {
    const std::scoped_lock lock(common_.mutex);
    ProbeOptions given;
    OptionList list = options_of(given);
    try {
      list.read(common_.options.args);
    } catch (const UsageError&) {
      return {};
    }
    return given.servers_of(strategy().backend);
  }

  /// Reads the URLs of its servers again at intervals, as a file may have a new password. One that
  /// is just being written may be incomplete: URLs that it lacks stay.
  bool urls_changed() {
    const TimePoint now = TimePoint::clock::now();
    if (now < next_reading_) return false;
    next_reading_ = now + kBetweenReadings;
    std::vector<std::string> urls = given_urls();
    if (urls.empty() || urls == urls_) return false;
    const std::string before = addresses_of(strategy().backend, urls_);
    const std::string after = addresses_of(strategy().backend, urls);
    // Metrics name the servers by their addresses, for as long as the probe runs.
    if (before != after && !common_.options.deployment) {
      common_.warn_once(
          fmt::format("its URLs name {} now: this probe stays with {} until it is "
                      "restarted, as its metrics name these servers",
                      after, before));
      return false;
    }
    urls_ = std::move(urls);
    reached_ = false;
    return true;
  }

  /// Checks the servers before the first round, and after their URLs have changed. Returns why they
  /// cannot be used; empty: they can.
  std::string reach(const std::stop_token& stop) {
    if (!urls_changed() && reached_) return {};
    ProbeOptions options = common_.options;
    options.servers[std::string(strategy().backend)] = urls_;
    std::vector<Selected> selected = {selected_};
    std::vector<results::Skipped> skipped;
    const auto servers = deploy(options, selected, skipped, stop);
    if (!servers && !skipped.empty()) {
      skipped_ = skipped.front().reason;
      tell(std::nullopt);
      common_.console.note(fmt::format("skipped: {}: {}", strategy().name, *skipped_));
    }
    if (!servers) return servers.error();
    for (const std::string& line : servers->warnings) common_.warn_once(line);
    plan_.endpoints = servers->endpoints;
    reached_ = true;
    return {};
  }

  /// Returns why it could not begin; empty: it did.
  std::string round(const std::stop_token& stop) {
    const TimePoint now = TimePoint::clock::now();
    plan_.workload.duration = common_.until ? std::min(kRound, *common_.until - now) : kRound;
    if (plan_.workload.duration <= Duration::zero()) return {};
    server_ = instances();
    over_ = std::stop_source();
    const std::stop_callback on_stop(stop, [this] { over_.request_stop(); });
    const loadgen::RunReport report = loadgen::run_plans({&plan_, 1}, *this, over_.get_token());
    for (const results::Run& run : report.runs) note(run);
    return report.not_started.empty() ? std::string() : report.not_started.front().reason;
  }

  void run_begins(const loadgen::RunShared& run) override {
    live_ = &run;
    found_ = {};
    beaten_at_.reset();
    paused_ = false;
    common_.metrics.run_begins(run);
  }
  void run_ends(const loadgen::RunShared& run, const results::Run* result) override {
    live_ = nullptr;
    common_.metrics.run_ends(run, result);
  }

  void on_warning(const std::string& line) override { health_.on_warning(line); }
  void on_progress(const loadgen::Progress& progress) override {
    const bool measuring = progress.phase == loadgen::Progress::Phase::measuring;
    if (paused_ || stood_still(measuring)) return;
    if (measuring) {
      common_.metrics.beat(strategy());
      look_at_findings();
    }
    health_.on_progress(progress);
    if (!measuring) return;
    if (!over_.stop_requested() && urls_changed()) {
      health_.say("its servers' URLs have changed: connecting again");
      over_.request_stop();
    }
    try_connection();
    // What it did itself was no pause.
    beaten_at_ = TimePoint::clock::now();
  }

  /// Whether the process stood still since the previous progress: it was stopped, or its host was.
  /// Leases ran out meanwhile and sections are late, which is not the store's fault: the round
  /// ends, and counts up to that progress.
  bool stood_still(bool measuring) {
    const TimePoint now = TimePoint::clock::now();
    const auto before = std::exchange(beaten_at_, measuring ? std::optional(now) : std::nullopt);
    if (!measuring || !before || now - *before <= kLateProgress) return false;
    paused_ = true;
    const Duration time = now - *before - kBetweenProgress;
    common_.metrics.stood_still(strategy(), time);
    health_.say(fmt::format(
        "this probe stood still for {:.1f} s (its process or its host was stopped, or had no CPU): "
        "what happened meanwhile is not counted",
        seconds(time)));
    over_.request_stop();
    return true;
  }

  void look_at_findings() {
    const loadgen::AuditTotals audit = live_->audit.totals(TimePoint::clock::now());
    const ProbeFindings found{.overlaps = audit.overlaps,
                              .fence_resets = audit.fence_resets,
                              .leases_lost = live_->recorder.total(loadgen::Count::leases_lost)};
    const ProbeFindings latest = found - std::exchange(found_, found);
    health_.on_findings(latest, latest.any() ? cause() : std::string());
  }

  std::vector<std::unique_ptr<Store>> stores() const {
    return make_stores(strategy(), plan_.endpoints, plan_.workload.strategy.command_timeout);
  }

  /// Which server processes answer; empty for those that do not tell.
  std::vector<std::string> instances() const {
    std::vector<std::string> all;
    for (const auto& store : stores()) {
      const auto facts = store->facts();
      all.push_back(facts ? facts->instance : std::string());
    }
    return all;
  }

  /// Of findings.
  std::string cause() {
    const TimePoint now = TimePoint::clock::now();
    const std::vector<std::string> present = instances();
    const bool known = std::ranges::none_of(present, &std::string::empty) &&
                       std::ranges::none_of(server_, &std::string::empty);
    if (!known) return "whether the server has restarted is not known";
    if (std::exchange(server_, present) != present) restarted_at_ = now;
    if (restarted_at_ && now - *restarted_at_ < kAfterRestart) {
      return "the server has restarted, or another one has taken its place";
    }
    return "the server has not restarted: look for evictions, deleted keys and stalls";
  }

  /// Opens and closes a connection now and then, while the open ones work.
  void try_connection() {
    if (TimePoint::clock::now() < next_connection_ || health_.failing()) return;
    const auto all = stores();
    std::size_t failed = 0;
    std::optional<std::string> why;
    for (const auto& store : all) {
      const auto reached = store->reach(over_.get_token());
      if (over_.stop_requested()) return;
      if (reached) continue;
      ++failed;
      why = reached.error().message;
    }
    // A quorum may lack a minority.
    if (2 * failed <= all.size()) why.reset();
    had_errors_ |= why.has_value();
    health_.on_connect(why);
    common_.metrics.set_connect_failing(strategy(), why);
    next_connection_ = TimePoint::clock::now() + kBetweenConnections;
  }

  void tell(std::optional<FailureReason> reason) {
    std::optional<std::string> why;
    if (reason) why = fmt::format("{}: {}", info_of(*reason).name, info_of(*reason).meaning);
    common_.metrics.set_failing(strategy(), std::move(why));
  }

  /// The sections that were due in `lost` count as failed.
  void note_outage(const std::string& why, Duration tried, Duration lost) {
    due_ += seconds(lost) * *plan_.workload.rate;
    const auto sections = static_cast<std::uint64_t>(due_);
    due_ -= static_cast<double>(sections);
    common_.metrics.not_connected(strategy(), loadgen::reason_of(why), tried, sections);
  }

  void note(const results::Run& run) {
    // Of a round that stood still, only what was found before counts.
    ProbeFindings found = found_;
    if (!paused_) {
      found.overlaps = run.audit.overlaps;
      found.lost_updates = run.audit.lost_updates;
      violations_.fence_regressions += run.audit.fence_regressions;
    }
    health_.on_findings(found - found_, "found at the end of a round", true);
    violations_ += {.overlaps = found.overlaps, .lost_updates = found.lost_updates};
    broken_ |= paused_ ? strategy().traits.promises_exclusion && found.overlaps > 0
                       : run.audit.verdict == results::Verdict::violated;
    // A time-out is an error: nobody else uses these locks, and the clients wait long enough for
    // each other.
    const results::Outcomes& outcomes = run.outcomes;
    had_errors_ |=
        !paused_ && outcomes.failed + outcomes.unknown + outcomes.timed_out + outcomes.refused > 0;
  }

  loadgen::RunPlan plan_;
  const Selected selected_;
  Common& common_;
  ProbeHealth health_;
  std::vector<std::string> urls_;  ///< of its servers
  TimePoint next_reading_ = TimePoint::clock::now() + kBetweenReadings;
  std::optional<std::string> skipped_;
  double due_ = 0;  ///< sections, or a part of one, that were due during an outage
  std::optional<TimePoint> restarted_at_;
  TimePoint next_connection_;
  ProbeFindings violations_;
  bool reached_ = false, broken_ = false, had_errors_ = false, gave_up_ = false;
  // Of the current round:
  std::stop_source over_;
  const loadgen::RunShared* live_ = nullptr;
  ProbeFindings found_;                 ///< so far
  std::optional<TimePoint> beaten_at_;  ///< the latest progress
  std::vector<std::string> server_;     ///< the processes that answer
  bool paused_ = false;                 ///< the process stood still
};

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
    options.metrics.deployments.emplace(
        backend, options.deployment.value_or(addresses_of(backend, options.servers_of(backend))));
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
