#pragma once

#include <stop_token>

#include "cli/console/deploy.h"
#include "cli/console/publish.h"
#include "cli/console/session.h"
#include "cli/options/load_options.h"
#include "deployment/deployment.h"
#include "exporter/exporter.h"
#include "history/log.h"
#include "loadgen/run/runner.h"
#include "strategies/duration.h"

namespace lockbench::cli {

/// Several loads differ in some options: those that the user left to the loads become null in the
/// record.
void leave_to_the_loads(const LoadOptions& options, OptionRecord& record);

/// Carries out --metrics-listen and --linger during one command.
class Metrics {
 public:
  /// Starts to serve if --metrics-listen is given, with every series of the selected strategies.
  /// Call prepare_signals() first. A UsageError names the option.
  static Metrics start(const LoadOptions& options, const std::vector<Selected>& selected,
                       const std::string& run_id, Console& console);

  /// Observes runs, whether or not the metrics are served. Never null.
  exporter::RunMetrics* watcher() { return metrics_.get(); }

  /// Serves for the time of --linger, or until the stop.
  void linger(Console& console, const std::stop_token& stop);

 private:
  Duration linger_{};
  std::shared_ptr<exporter::RunMetrics> metrics_;
  std::unique_ptr<exporter::HttpEndpoint> endpoint_;
};

/// One configuration of `run`: strategies under loads, and their result file. Call the members in
/// this order, plans() and those below only if deploy() returned true.
class Measurement {
 public:
  /// Checks everything that needs no server. Make a Session before, which outlives it.
  Measurement(const RunOptions& options, std::vector<Selected> selected);
  // The plans point to it.
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  /// Starts metrics and servers. False if a stop came first.
  bool deploy(Session& session);
  /// One for each workload. The result is saved after each of their runs.
  std::vector<loadgen::RunPlan> plans();
  const deployment::Deployment& servers() const { return *servers_; }
  /// Each strategy has its own values of these options ("--ttl", "3s"): the result's workload has
  /// null for them.
  void leave_to_each(const std::vector<std::string>& options);
  /// Takes the part of the report that belongs to this measurement, and saves it.
  void take(const loadgen::RunReport& report, Console& console);
  /// Saves the result, and shows it if asked to. Returns the exit code.
  int finish(bool show, Console& console);
  /// Serves metrics for as long as --linger says.
  void linger(Console& console, const std::stop_token& stop) { metrics_->linger(console, stop); }

  const std::string& out() const { return out_; }
  const results::Result& result() const { return result_; }

 private:
  /// Takes over the runs of the --out file, if it exists.
  void resume();
  /// A UsageError if the resumed file was measured differently, as far as is known so far.
  void check_resumed() const;
  loadgen::RunPlan plan_of(const loadgen::Workload& point);

  const RunOptions options_;
  std::vector<Selected> selected_;
  results::Result result_;  ///< including the runs of a resumed file
  std::string out_;
  std::optional<results::Result> resumed_;  ///< the resumed file, without its runs
  std::optional<ResultFile> file_;
  std::optional<Metrics> metrics_;
  std::optional<deployment::Deployment> servers_;
  std::optional<FaultServers> faults_;
  std::unique_ptr<history::Log> history_;  ///< of --history
  loadgen::RunMaker maker_;                ///< empty: this process has all clients
  std::stop_token stop_;
  bool errors_ = false;
};

/// Puts the selected strategies under the loads of the options, saves and shows the result. Returns
/// the exit code.
int measure(const RunOptions& options, std::vector<Selected> selected);

/// Time that a run adds to its load: connecting, draining and removing keys.
inline constexpr Duration kBesidesLoad = std::chrono::milliseconds(300);

/// Says how long the plans take, unless it is short.
void announce(const std::vector<loadgen::RunPlan>& plans, Console& console);

/// "redis-setnx (3/12) measuring 45 %, 12.3k sections/s, 2 failed"
std::string progress_text(const loadgen::Progress& progress);

/// Shows the progress of the runs: in place on a terminal, a line every 5 s elsewhere.
class ProgressView : public loadgen::ProgressObserver {
 public:
  /// `console` must outlive the view; `now` is the clock for these 5 s.
  ProgressView(Console& console, std::function<TimePoint()> now)
      : console_(console), now_(std::move(now)) {}

  void on_progress(const loadgen::Progress& progress) override;
  void on_warning(const std::string& line) override;

 private:
  Console& console_;
  std::function<TimePoint()> now_;
  TimePoint next_line_ = TimePoint::min();
};

}  // namespace lockbench::cli
