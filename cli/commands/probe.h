#pragma once

#include <functional>

#include "cli/console/console.h"
#include "loadgen/run/runner.h"
#include "strategies/duration.h"

namespace lockbench::cli {

/// Tells when a probed strategy begins to fail, why, and when it works again: a line for each,
/// however many failures there are in between. One per runner.
class ProbeHealth : public loadgen::ProgressObserver {
 public:
  using Now = std::function<TimePoint()>;
  /// Is told why the strategy fails; nothing: it works.
  using Report = std::function<void(std::optional<loadgen::FailureReason>)>;

  /// It works again after so long without a failure. `console` must outlive it.
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

 private:
  using Failures = loadgen::ByKind<loadgen::FailureReason, std::uint64_t>;

  /// The most frequent of them, slowness only if there is no error; nothing if there are none.
  static std::optional<loadgen::FailureReason> main_reason(Failures failures);
  void fails(loadgen::FailureReason reason, const std::string& message);
  void works();
  void say(const std::string& what);

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
};

}  // namespace lockbench::cli
