#include "loadgen/run/fault.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "loadgen/run/worker.h"
#include "strategies/number.h"

namespace lockbench::loadgen {
namespace {

using Done = tl::expected<void, std::string>;

constexpr Duration kShortest = std::chrono::milliseconds(1);
constexpr int kMostNodes = 15;
constexpr Duration kLongestDelay = std::chrono::hours(1);

/// `text` follows the colon; nothing without a colon.
Done read_parameter(std::optional<std::string_view> text, Fault& fault) {
  const auto wrong = [&](std::string_view allowed) {
    return tl::unexpected(fmt::format("\"{}\" is not {}", text.value_or(""), allowed));
  };
  if (fault.kind == FaultKind::delay) {
    const auto delay = parse_duration(text.value_or(""));
    if (!delay || *delay <= Duration::zero() || *delay > kLongestDelay) {
      return wrong(fmt::format("a delay of up to {}: delay:5ms", format_duration(kLongestDelay)));
    }
    fault.delay = *delay;
    return {};
  }
  if (fault.kind == FaultKind::client_pause) {
    const auto lasts = parse_duration(text.value_or(""));
    if (!lasts || *lasts < kShortest || *lasts > kLongestDelay) {
      return wrong(fmt::format("a pause of {} to {}: client-pause:2s", format_duration(kShortest),
                               format_duration(kLongestDelay)));
    }
    fault.lasts = *lasts;
    return {};
  }
  if (!text) return {};
  if (fault.kind == FaultKind::partition) {
    const auto share = parse_number<double>(*text);
    // Written so that NaN is rejected too.
    if (!share || !(*share > 0 && *share <= 1)) {
      return wrong("a share of the connections above 0 and up to 1");
    }
    fault.share = *share;
    return {};
  }
  if (fault.kind == FaultKind::node_kill || fault.kind == FaultKind::node_freeze) {
    const auto nodes = parse_number<int>(*text);
    if (!nodes || *nodes < 1 || *nodes > kMostNodes) {
      return wrong(fmt::format("a number of nodes from 1 to {}", kMostNodes));
    }
    fault.nodes = *nodes;
    return {};
  }
  return tl::unexpected(
      fmt::format("{} takes no parameter, but got \"{}\"", to_string(fault.kind), *text));
}

Done read_times(std::string_view text, Fault& fault) {
  const std::size_t plus = text.find('+');
  const auto at = parse_duration(text.substr(0, plus));
  if (!at) return tl::unexpected(at.error());
  fault.at = *at;
  if (plus == std::string_view::npos) return {};
  if (fault.lasts) {
    return tl::unexpected(fmt::format("a pause has its length before the @: {}:2s@{}",
                                      to_string(fault.kind), format_duration(fault.at)));
  }
  const auto lasts = parse_duration(text.substr(plus + 1));
  if (!lasts) return tl::unexpected(lasts.error());
  if (*lasts < kShortest) {
    return tl::unexpected(fmt::format("a length of {} is too short: at least {}",
                                      format_duration(*lasts), format_duration(kShortest)));
  }
  fault.lasts = *lasts;
  return {};
}

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

}  // namespace

std::string_view to_string(FaultKind kind) { return kFaults.at(static_cast<std::size_t>(kind)); }

std::optional<Duration> Fault::heals_at() const {
  if (lasts) return at + *lasts;
  if (kind == FaultKind::failover) return at;
  return std::nullopt;
}

std::string Fault::to_string() const {
  const bool said = !lasts || kind == FaultKind::client_pause;
  return fmt::format("{}@{}{}", what, format_duration(at),
                     said ? "" : "+" + format_duration(*lasts));
}

tl::expected<Fault, std::string> parse_fault(const std::string& text) {
  const std::size_t sign = text.find('@');
  Fault fault;
  fault.what = text.substr(0, sign);
  const std::size_t colon = fault.what.find(':');
  const std::string name = fault.what.substr(0, colon);
  const auto* const known = std::find(kFaults.begin(), kFaults.end(), name);
  if (known == kFaults.end()) {
    return tl::unexpected(fmt::format("\"{}\" is none of {}", name, fmt::join(kFaults, ", ")));
  }
  if (sign == std::string::npos) {
    return tl::unexpected(fmt::format(
        "\"{}\" has no time: use {}@2s, or {}@2s+1s to heal it after a second", text, text, text));
  }
  fault.kind = static_cast<FaultKind>(known - kFaults.begin());
  std::optional<std::string_view> parameter;
  if (colon != std::string::npos) parameter = std::string_view(fault.what).substr(colon + 1);
  auto done = read_parameter(parameter, fault);
  if (done) done = read_times(std::string_view(text).substr(sign + 1), fault);
  if (!done) return tl::unexpected(fmt::format("\"{}\": {}", text, done.error()));
  return fault;
}

tl::expected<std::vector<Fault>, std::string> timetable(std::vector<Fault> faults,
                                                        Duration duration) {
  std::stable_sort(faults.begin(), faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Fault& fault = faults[i];
    if (fault.at >= duration) {
      return tl::unexpected(fmt::format("{} would start after the end of the run, which takes {}",
                                        fault.to_string(), format_duration(duration)));
    }
    const std::optional<Duration> heals_at = fault.heals_at();
    if (heals_at && *heals_at > duration) {
      return tl::unexpected(fmt::format("{} would last longer than the run, which takes {}",
                                        fault.to_string(), format_duration(duration)));
    }
    if (i + 1 == faults.size()) break;
    const Fault& next = faults[i + 1];
    if (!heals_at || *heals_at > next.at) {
      return tl::unexpected(
          fmt::format("{} would start while {} is in force: faults must not overlap",
                      next.to_string(), fault.to_string()));
    }
  }
  return faults;
}

bool restarts_servers(const std::vector<Fault>& faults) {
  return std::any_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind == FaultKind::store_kill || fault.kind == FaultKind::node_kill ||
           fault.kind == FaultKind::failover;
  });
}

bool strikes_servers(const std::vector<Fault>& faults) {
  return restarts_servers(faults) || std::ranges::any_of(faults, [](const Fault& fault) {
           return fault.kind == FaultKind::store_freeze || fault.kind == FaultKind::node_freeze;
         });
}

RecoveryMeter::RecoveryMeter(double before) : before_(before), window_(window_for(before)) {}

std::optional<RecoveryMeter> RecoveryMeter::after(Duration time, std::uint64_t count) {
  if (time < kShortestBefore || count < kFewestBefore) return std::nullopt;
  return RecoveryMeter(static_cast<double>(count) / seconds(time));
}

void RecoveryMeter::read(TimePoint now, std::uint64_t count) {
  readings_.push_back({now, count});
  // Keeps the latest reading that still makes a whole window with this one.
  while (readings_.size() > 1 && now - readings_[1].at >= window_) readings_.pop_front();
  const Reading& first = readings_.front();
  if (now - first.at < window_) return;
  const double share = static_cast<double>(count - first.count) / seconds(now - first.at) / before_;
  const bool over = healed_at_ && back_at_;
  // A dip within three standard deviations of a Poisson count is chance.
  const double noise = 3 / std::sqrt(before_ * seconds(now - first.at));
  const double dip = share < 1 - noise ? share : std::max(share, 1.0);
  if (!over) lowest_share_ = std::min(lowest_share_.value_or(dip), dip);
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
    if (is_of_client(fault.kind) && !strike_client(fault, stop)) return;
    if (++struck_ < faults_.size()) next_at = begin + faults_[struck_].at;
    strike(fault, next_at, since, stop);
  }
}

bool FaultPlayer::strike_client(const Fault& fault, const std::stop_token& stop) {
  const auto struck = env_->make_event();
  run_.victim->arm(fault, *struck);
  const WaitResult waited = env_->wait(struck.get(), TimePoint::max(), stop);
  run_.victim->disarm();
  return waited == WaitResult::signalled;
}

FaultPlayer::Done FaultPlayer::inject(const Fault& fault) {
  if (is_of_client(fault.kind)) return {};  // struck already
  return target_.inject(run_.strategy, fault);
}

FaultPlayer::Done FaultPlayer::heal(const Fault& fault) {
  if (is_of_client(fault.kind)) {
    // Without a length, not even while the last waits run out.
    if (fault.lasts) run_.victim->replace();
    return {};
  }
  return target_.heal(run_.strategy, fault);
}

void FaultPlayer::strike(const Fault& fault, std::optional<TimePoint> next_at,
                         const SectionsDone& since, const std::stop_token& stop) {
  const auto& measured = run_.recorder.histograms(Phase::measured);
  Before before{.lag = measured[Timing::schedule_lag].snapshot(),
                .acquire = measured[Timing::acquired].snapshot()};
  const SectionsDone now = read();
  results::FaultMark mark{.fault = fault.what,
                          .at_seconds = since_load(env_->now()),
                          .healed_seconds = std::nullopt,
                          .recovery_seconds = std::nullopt,
                          .lowest_share = std::numeric_limits<double>::quiet_NaN()};
  auto recovery = RecoveryMeter::after(now.at - since.at, now.count - since.count);
  tell(fault, true);
  if (note(fault, inject(fault))) {
    if (!report_.before) report_.before = std::move(before);
    watch(fault, next_at, recovery, mark, stop);
    report_.marks.push_back(std::move(mark));
  } else {
    note(fault, heal(fault));
    tell(fault, false);
  }
}

void FaultPlayer::watch(const Fault& fault, std::optional<TimePoint> next_at,
                        std::optional<RecoveryMeter>& recovery, results::FaultMark& mark,
                        const std::stop_token& stop) {
  const TimePoint begin = run_.measure_start;
  std::optional<Duration> heals_at = fault.heals_at();
  // A client is struck when it next holds a lock.
  if (heals_at && is_of_client(fault.kind)) heals_at = env_->now() - begin + *fault.lasts;
  Done healed;
  std::atomic<bool> over{false};
  const auto make_well = [&] {
    healed = heal(fault);
    over = true;
  };
  std::unique_ptr<Task> healing;  // ends before the objects that it writes to
  bool begun = false, told = false;
  const Duration step =
      recovery ? std::min(recovery->window() / kReadingsInWindow, kLongestStep) : kLongestStep;
  // Ends with the run at the latest.
  while (!stop.stop_requested()) {
    const auto [now, sections] = read();
    if (recovery) recovery->read(now, sections);
    if (!begun && heals_at && now >= begin + *heals_at) {
      begun = true;
      // In a task of its own, as the player goes on measuring: the servers' time to start is part
      // of the recovery. Without a task, heals here.
      auto task = Carrier::current().start([&](const std::stop_token&) { make_well(); },
                                           [](const std::string& /*why*/) {});
      if (task) {
        healing = *std::move(task);
      } else {
        make_well();
      }
      mark.healed_seconds = since_load(now);
      if (recovery) recovery->healed(now);
    }
    const bool is_over = over;
    if (is_over && !std::exchange(told, true)) tell(fault, false);
    if (is_over && (!recovery || recovery->back_at() || (next_at && now >= *next_at))) break;
    TimePoint wake_at = now + step;
    if (!begun && heals_at) {
      wake_at = std::min(wake_at, begin + *heals_at);
    }
    wait_until(wake_at, stop);
  }
  healing.reset();
  if (!begun) make_well();
  note(fault, healed);
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
