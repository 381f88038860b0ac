#include "cli/commands/prober.h"

#include <algorithm>

#include "loadgen/run/worker.h"
#include "strategies/store.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using loadgen::FailureReason;

// A probe is a sequence of runs of this length, so that the records of a run stay small.
constexpr Duration kRound = 10min;
// Between two reports of a run's progress.
constexpr Duration kBetweenProgress = 1s;
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

}  // namespace

std::vector<std::string> GivenServers::urls(std::string_view backend) {
  const std::scoped_lock lock(mutex_);
  const TimePoint now = TimePoint::clock::now();
  if (now - read_at_ >= kBetweenReadings) {
    read_at_ = now;
    read();
  }
  const auto found = servers_.find(backend);
  return found == servers_.end() ? std::vector<std::string>() : found->second;
}

void GivenServers::read() {
  ProbeOptions options;
  OptionList list = options_of(options);
  try {
    list.read(args_);
  } catch (const UsageError&) {
    return;
  }
  for (auto& [store, urls] : options.servers) {
    if (!urls.empty()) servers_[store] = std::move(urls);
  }
}

Prober::Prober(loadgen::RunPlan plan, Selected selected, ProbeCommon& common)
    : plan_(std::move(plan)),
      selected_(selected),
      common_(common),
      health_(strategy().name, calm_of(plan_.workload), common.console,
              [this](std::optional<FailureReason> reason) { tell(reason); }),
      next_connection_(TimePoint::clock::now() + kBetweenConnections) {
  plan_.watcher = this;
}

void Prober::probe(const std::stop_token& stop) {
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

std::string Prober::what_broke() const {
  std::string text = fmt::format("{}: {}", strategy().name, violations_.to_string());
  if (regressions_ == 0) return text;
  if (violations_.any()) text += ", ";
  return text + fmt::format("grants with old fencing numbers: {}", regressions_);
}

Duration Prober::calm_of(const loadgen::Workload& workload) {
  // By then each lock has been tried again.
  const std::chrono::duration<double> round(workload.key_count() / *workload.rate);
  return std::max(kCalm, std::chrono::duration_cast<Duration>(round));
}

std::string Prober::reach(const std::stop_token& stop) {
  const std::vector<std::string> urls = common_.servers.urls(strategy().backend);
  if (urls == urls_) return {};
  ProbeOptions options = common_.options;
  options.servers[std::string(strategy().backend)] = urls;
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
  urls_ = urls;
  return {};
}

std::string Prober::round(const std::stop_token& stop) {
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

void Prober::run_begins(const loadgen::RunShared& run) {
  live_ = &run;
  found_ = {};
  beaten_at_.reset();
  paused_ = false;
  if (common_.metrics != nullptr) common_.metrics->run_begins(run);
}

void Prober::run_ends(const loadgen::RunShared& run, const results::Run* result) {
  live_ = nullptr;
  if (common_.metrics != nullptr) common_.metrics->run_ends(run, result);
}

void Prober::on_progress(const loadgen::Progress& progress) {
  if (paused_ || stood_still(progress)) return;
  if (progress.phase == loadgen::Progress::Phase::measuring) {
    if (common_.metrics != nullptr) common_.metrics->beat(strategy());
    look_at_findings();
  }
  health_.on_progress(progress);
  if (progress.phase != loadgen::Progress::Phase::measuring) return;
  if (common_.servers.urls(strategy().backend) != urls_ && !over_.stop_requested()) {
    health_.say("its servers' URLs have changed: connecting again");
    over_.request_stop();
  }
  try_connection();
  // What it did itself was no pause.
  beaten_at_ = TimePoint::clock::now();
}

bool Prober::stood_still(const loadgen::Progress& progress) {
  const TimePoint now = TimePoint::clock::now();
  const bool measuring = progress.phase == loadgen::Progress::Phase::measuring;
  const auto before = std::exchange(beaten_at_, measuring ? std::optional(now) : std::nullopt);
  if (!measuring || !before || now - *before <= exporter::RunMetrics::kLateBeat) return false;
  paused_ = true;
  const Duration time = now - *before - kBetweenProgress;
  if (common_.metrics != nullptr) common_.metrics->stood_still(strategy(), time);
  health_.say(fmt::format(
      "this probe stood still for {:.1f} s (its process or its host was stopped, or had no CPU): "
      "what happened meanwhile is not counted",
      seconds(time)));
  over_.request_stop();
  return true;
}

void Prober::look_at_findings() {
  const loadgen::AuditTotals audit = live_->audit.totals(TimePoint::clock::now());
  const ProbeFindings found{.overlaps = audit.overlaps,
                            .fence_resets = audit.fence_resets,
                            .leases_lost = live_->recorder.total(loadgen::Count::leases_lost)};
  const ProbeFindings latest = found - std::exchange(found_, found);
  health_.on_findings(latest, latest.any() ? cause() : std::string());
}

std::vector<std::string> Prober::instances() const {
  std::vector<std::string> all;
  for (const auto& store :
       make_stores(strategy(), plan_.endpoints, plan_.workload.strategy.command_timeout)) {
    const auto facts = store->facts();
    all.push_back(facts ? facts->instance : std::string());
  }
  return all;
}

std::string Prober::cause() {
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

void Prober::try_connection() {
  const TimePoint now = TimePoint::clock::now();
  if (now < next_connection_ || health_.failing()) return;
  const auto stores =
      make_stores(strategy(), plan_.endpoints, plan_.workload.strategy.command_timeout);
  std::size_t failed = 0;
  std::optional<std::string> why;
  for (const auto& store : stores) {
    const auto reached = store->reach(over_.get_token());
    if (over_.stop_requested()) return;
    if (reached) continue;
    ++failed;
    why = reached.error().message;
  }
  // A quorum may lack a minority.
  if (2 * failed <= stores.size()) why.reset();
  had_errors_ |= why.has_value();
  health_.on_connect(why);
  if (common_.metrics != nullptr) common_.metrics->set_connect_failing(strategy(), why);
  next_connection_ = TimePoint::clock::now() + kBetweenConnections;
}

void Prober::tell(std::optional<FailureReason> reason) {
  if (common_.metrics == nullptr) return;
  std::optional<std::string> why;
  if (reason) why = fmt::format("{}: {}", info_of(*reason).name, info_of(*reason).meaning);
  common_.metrics->set_failing(strategy(), std::move(why));
}

void Prober::note_outage(const std::string& why, Duration tried, Duration lost) {
  due_ += seconds(lost) * *plan_.workload.rate;
  const auto sections = static_cast<std::uint64_t>(due_);
  due_ -= static_cast<double>(sections);
  if (common_.metrics == nullptr) return;
  common_.metrics->not_connected(strategy(), loadgen::reason_of(why), tried, sections);
}

void Prober::note(const results::Run& run) {
  // Of a round that stood still, only what was found before counts.
  ProbeFindings found = found_;
  if (!paused_) {
    found.overlaps = run.audit.overlaps;
    found.lost_updates = run.audit.lost_updates;
    regressions_ += run.audit.fence_regressions;
  }
  ProbeFindings late = found - found_;
  health_.on_findings(late, "found at the end of a round", true);
  violations_ += {.overlaps = found.overlaps, .lost_updates = found.lost_updates};
  broken_ |= paused_ ? strategy().traits.promises_exclusion && found.overlaps > 0
                     : run.audit.verdict == results::Verdict::violated;
  // A time-out is an error: nobody else uses these locks, and the clients wait long enough for
  // each other.
  const results::Outcomes& outcomes = run.outcomes;
  had_errors_ |=
      !paused_ && outcomes.failed + outcomes.unknown + outcomes.timed_out + outcomes.refused > 0;
}

}  // namespace lockbench::cli
