#include "loadgen/run/fault_player.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <limits>
#include <utility>

namespace lockbench::loadgen {
namespace {

constexpr double kBackShare = 0.9;
constexpr double kCountsInWindow = 100;
constexpr Duration kShortestWindow = std::chrono::milliseconds(100);
constexpr Duration kLongestWindow = std::chrono::seconds(1);
constexpr Duration kShortestBefore = std::chrono::milliseconds(100);
constexpr std::uint64_t kFewestBefore = 20;

Duration window_for(double rate) {
  const std::chrono::duration<double> wanted(kCountsInWindow / rate);
  if (wanted >= kLongestWindow) return kLongestWindow;
  return std::max(kShortestWindow, std::chrono::duration_cast<Duration>(wanted));
}

constexpr int kReadingsInWindow = 10;
/// Interval of readings if there is no throughput to compare with.
constexpr Duration kLongestStep = std::chrono::milliseconds(100);

/// An exception there is a failure of the fault.
template <class Work>
tl::expected<void, std::string> guarded(Work work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return tl::unexpected<std::string>(error.what());
  }
}

/// Heals a fault beside the player, which goes on measuring; at once where nothing can run there.
class Healing {
 public:
  using Done = tl::expected<void, std::string>;

  void begin(std::function<Done()> heal) {
    begun_ = true;
    const auto work = [this, heal](const std::stop_token&) {
      done_ = heal();
      over_ = true;
    };
    auto task = Carrier::current().start(work, [](const std::string& /*why*/) {});
    if (task) {
      task_ = *std::move(task);
    } else {
      work({});
    }
  }
  bool begun() const { return begun_; }
  bool over() const { return over_; }
  /// Waits for its end.
  Done result() {
    task_.reset();
    return done_;
  }

 private:
  bool begun_ = false;
  std::atomic<bool> over_{false};
  Done done_;
  std::unique_ptr<Task> task_;  ///< last: ends before what it writes to
};

}  // namespace

RecoveryMeter::RecoveryMeter(double before) : before_(before), window_(window_for(before)) {}

std::optional<RecoveryMeter> RecoveryMeter::after(Duration time, std::uint64_t count) {
  if (time < kShortestBefore || count < kFewestBefore) return std::nullopt;
  return RecoveryMeter(static_cast<double>(count) / seconds(time));
}

void RecoveryMeter::read(TimePoint now, std::uint64_t count) {
  readings_.push_back({now, count});
  // Keep the latest reading that still makes a whole window with this one.
  while (readings_.size() > 1 && now - readings_[1].at >= window_) readings_.pop_front();
  const Reading& first = readings_.front();
  if (now - first.at < window_) return;
  const double share = static_cast<double>(count - first.count) / seconds(now - first.at) / before_;
  const bool over = healed_at_ && back_at_;
  if (!over) lowest_share_ = std::min(lowest_share_.value_or(share), share);
  const bool in_time = !healed_at_ || first.at >= *healed_at_;
  if (in_time && !back_at_ && share >= kBackShare) back_at_ = first.at;
}

void RecoveryMeter::healed(TimePoint now) {
  healed_at_ = now;
  back_at_.reset();
}

FaultPlayer::FaultPlayer(const RunShared& run, const std::vector<Fault>& faults,
                         FaultTarget& target, RunWatcher* watcher)
    : run_(run),
      faults_(faults),
      target_(target),
      watcher_(watcher),
      env_(run.make_env(run.nonce)) {}

void FaultPlayer::start() {
  const auto failed = [this](const std::string& why) {
    report_.failures.push_back("playing the faults: " + why);
  };
  auto started =
      Carrier::current().start([this](const std::stop_token& stop) { play(stop); }, failed);
  if (!started) return failed(started.error());
  task_ = *std::move(started);
}

FaultPlayer::Report FaultPlayer::finish() {
  task_.reset();
  for (std::size_t i = struck_; i < faults_.size(); ++i) {
    report_.never_struck.push_back(faults_[i].to_string());
  }
  return std::move(report_);
}

void FaultPlayer::play(const std::stop_token& stop) {
  const TimePoint begin = run_.measure_start;
  SectionsDone since{run_.load_start};
  if (faults_.front().at > Duration::zero()) {
    if (!wait_until(begin, stop)) return;
    since = read();
  }
  for (; struck_ < faults_.size(); since = read()) {
    const Fault& fault = faults_[struck_];
    if (!wait_until(begin + fault.at, stop)) return;
    std::optional<TimePoint> next_at;
    if (++struck_ < faults_.size()) next_at = begin + faults_[struck_].at;
    strike(fault, next_at, since, stop);
  }
}

void FaultPlayer::strike(const Fault& fault, std::optional<TimePoint> next_at,
                         const SectionsDone& since, const std::stop_token& stop) {
  HistogramSnapshot lag_before =
      run_.recorder.histograms(Phase::measured)[Timing::schedule_lag].snapshot();
  const SectionsDone now = read();
  results::FaultMark mark{.fault = fault.what,
                          .at_seconds = since_load(env_->now()),
                          .healed_seconds = std::nullopt,
                          .recovery_seconds = std::nullopt,
                          .lowest_share = std::numeric_limits<double>::quiet_NaN()};
  auto recovery = RecoveryMeter::after(now.at - since.at, now.sections - since.sections);
  tell(fault, true);
  const auto inject = [&] { return target_.inject(run_.strategy, fault); };
  if (note(fault, guarded(inject))) {
    if (!report_.lag_before) report_.lag_before = std::move(lag_before);
    watch(fault, next_at, recovery, mark, stop);
    report_.marks.push_back(std::move(mark));
  } else {
    note(fault, guarded([&] { return target_.heal(run_.strategy, fault); }));
    tell(fault, false);
  }
}

void FaultPlayer::watch(const Fault& fault, std::optional<TimePoint> next_at,
                        std::optional<RecoveryMeter>& recovery, results::FaultMark& mark,
                        const std::stop_token& stop) {
  const std::optional<Duration> heals_at = fault.heals_at();
  const auto heal = [&] { return guarded([&] { return target_.heal(run_.strategy, fault); }); };
  Healing healing;
  bool told = false;
  const Duration step =
      recovery ? std::min(recovery->window() / kReadingsInWindow, kLongestStep) : kLongestStep;
  // Ends with the run at the latest.
  while (!stop.stop_requested()) {
    const auto [now, sections] = read();
    if (recovery) recovery->read(now, sections);
    if (!healing.begun() && heals_at && now >= run_.measure_start.load() + *heals_at) {
      // The time that servers take to start is part of the recovery.
      healing.begin(heal);
      mark.healed_seconds = since_load(now);
      if (recovery) recovery->healed(now);
    }
    const bool healed = healing.over();
    if (healed && !std::exchange(told, true)) tell(fault, false);
    if (healed && (!recovery || recovery->back_at() || (next_at && now >= *next_at))) break;
    TimePoint wake_at = now + step;
    if (!healing.begun() && heals_at) {
      wake_at = std::min(wake_at, run_.measure_start.load() + *heals_at);
    }
    wait_until(wake_at, stop);
  }
  note(fault, healing.begun() ? healing.result() : heal());
  if (!told) tell(fault, false);
  if (!recovery) return;
  mark.lowest_share = recovery->lowest_share();
  if (recovery->back_at()) {
    mark.recovery_seconds =
        since_load(*recovery->back_at()) - mark.healed_seconds.value_or(mark.at_seconds);
  }
}

FaultPlayer::SectionsDone FaultPlayer::read() const {
  return {env_->now(), run_.recorder.total(Count::sections)};
}

bool FaultPlayer::wait_until(TimePoint when, const std::stop_token& stop) const {
  return env_->wait(nullptr, when, stop) != WaitResult::stopped && !stop.stop_requested();
}

bool FaultPlayer::note(const Fault& fault, const Done& done) {
  if (!done) {
    report_.failures.push_back(fmt::format("fault {}: {}", fault.to_string(), done.error()));
  }
  return done.has_value();
}

void FaultPlayer::tell(const Fault& fault, bool active) {
  if (watcher_ != nullptr) watcher_->fault_changes(run_, fault.kind, active);
}

double FaultPlayer::since_load(TimePoint when) const { return seconds(when - run_.load_start); }

}  // namespace lockbench::loadgen
