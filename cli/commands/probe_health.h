#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cli/console/console.h"
#include "loadgen/run/runner.h"
#include "strategies/duration.h"

namespace lockbench::cli {

/// What a probe's audit finds, apart from sections without a lock.
struct ProbeFindings {
  std::uint64_t overlaps = 0, lost_updates = 0, fence_resets = 0, leases_lost = 0;
  std::uint64_t fence_regressions = 0;  ///< told only at the end

  bool any() const;
  ProbeFindings& operator+=(const ProbeFindings& more);
  ProbeFindings operator-(const ProbeFindings& less) const;
  /// "two holders at once: 2, leases lost while held: 1"
  std::string to_string() const;
};

/// The log of a probed strategy: when it begins to fail, why, and when it works again, with one
/// line each, however many failures there are in between; and what the audit finds. One per runner.
class ProbeHealth : public loadgen::ProgressObserver {
 public:
  using Now = std::function<TimePoint()>;
  /// Called with the reason why the strategy fails, or nothing if it works.
  using Report = std::function<void(std::optional<loadgen::FailureReason>)>;

  /// After `calm` without a failure, it works again. `console` must outlive it.
  ProbeHealth(std::string_view strategy, Duration calm, Console& console, Report report,
              Now now = TimePoint::clock::now)
      : strategy_(strategy),
        calm_(calm),
        console_(console),
        report_(std::move(report)),
        now_(std::move(now)) {}

  void on_progress(const loadgen::Progress& progress) override;
  void on_warning(const std::string& line) override;
  /// The store could not be reached.
  void on_unreachable(const std::string& why);
  /// What was found since the previous call, and the cause if anything was. A line every 10 s at
  /// most, unless `at_once`: call it without findings too.
  void on_findings(const ProbeFindings& found, const std::string& cause, bool at_once = false);
  /// A new connection was opened, or failed for this reason.
  void on_connect(const std::optional<std::string>& failure);

  bool failing() const { return said_.has_value(); }
  /// Writes a line of the log.
  void say(const std::string& what);

 private:
  using Failures = loadgen::ByKind<loadgen::FailureReason, std::uint64_t>;

  /// The most frequent reason, `slow` only if there is no error; nothing without failures.
  static std::optional<loadgen::FailureReason> main_reason(Failures failures);
  void fails(loadgen::FailureReason reason, const std::string& message);
  void works();

  const std::string strategy_;
  const Duration calm_;
  Console& console_;
  const Report report_;
  const Now now_;
  std::uint64_t sections_ = 0;  ///< of the current run, like the failures
  Failures failures_;
  bool proven_ = false;                         ///< it has worked once
  std::optional<loadgen::FailureReason> said_;  ///< the latest reason, while it fails
  TimePoint failing_since_, said_at_;
  std::optional<TimePoint> calm_since_;
  ProbeFindings unsaid_;  ///< findings without a line so far
  std::string cause_;     ///< of the latest
  std::optional<TimePoint> found_said_at_;
  bool connects_ = true;
};

}  // namespace lockbench::cli
