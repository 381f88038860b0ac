#pragma once

#include <filesystem>

#include "cli/console/console.h"
#include "cli/console/deploy.h"
#include "cli/options/load_options.h"
#include "history/log.h"
#include "results/report/report.h"
#include "results/tables/show.h"
#include "strategies/duration.h"

namespace lockbench::cli {

/// The known flaws of each strategy in the result's runs.
results::KnownFlaws known_flaws(const results::Result& result);

/// How stdout shows a result: with colors, width and UTF-8 as it supports them.
results::Look look_of(const OutputOptions& options);

/// The result as stdout shows it. out_path() has checked the columns.
std::string render(const results::Result& result, const OutputOptions& options);

/// Prints to stdout, to a terminal without foreign control characters. False, with a message on
/// stderr, if that failed. The console's status line must be empty.
bool print_text(const std::string& given);

/// One line for each run that missed a threshold, or for which it is not decided, with the measured
/// value.
struct UnkeptThresholds {
  std::vector<std::string> missed, undecided;
  std::vector<results::Check> checks;  ///< of each run and threshold, also those that are kept
};
/// Controls are exempt unless they were named. A time or a rate of a run that was disturbed shows
/// no miss.
UnkeptThresholds unkept_thresholds(const std::vector<results::Threshold>& thresholds,
                                   const results::Result& result,
                                   const std::vector<Selected>& selected);

/// Writes a file, and calls `told` with its final path. False, with a message that begins with
/// `what`, if it could not be written to `path` itself.
bool save_file(const std::filesystem::path& path, const std::string& text, Console& console,
               std::string_view what = "",
               const std::function<void(const std::string&)>& told = nullptr);

/// False, with a warning, if the file is not the whole history.
bool close_history(history::Log& history, Console& console);

/// As the value of --out.
inline constexpr std::string_view kStdout = "-";

/// Where a command's result goes. It is saved while the command works, so that finished steps
/// survive a crash; to stdout it is written once, at the end. For one thread at a time.
class ResultFile {
 public:
  /// `console` must outlive it; `now` times the saving.
  ResultFile(
      std::string path, Console& console,
      std::function<TimePoint()> now = [] { return BootClock::now(); })
      : path_(std::move(path)), console_(console), now_(std::move(now)) {}

  const std::string& path() const { return path_; }
  bool is_stdout() const { return path_ == kStdout; }
  Console& console() const { return console_; }

  /// Saves the result so far. Warns of the first failure only: at the end there may be room again.
  void keep(const results::Result& result);
  /// Whether 20 times the duration of the last keep() has passed since it ended.
  bool has_time() const;
  /// After a step: keep() if it has time. Each writes the whole result, so that without a bound a
  /// long command would spend most of its time on that.
  void keep_step(const results::Result& result) {
    if (has_time()) keep(result);
  }

  /// At the end: says where the result is. False if it could not be written there.
  bool save(const results::Result& result);

 private:
  const std::string path_;
  Console& console_;
  const std::function<TimePoint()> now_;
  bool failed_ = false;
  TimePoint kept_at_{};
  Duration took_{};
};

/// Scripts rely on these.
namespace exit_code {
inline constexpr int kFine = 0, kUsage = 1, kErrors = 2, kExclusionBroken = 3, kInvalid = 4,
                     kUndecided = 5, kThresholdMissed = 99, kInterrupted = 105;
}  // namespace exit_code

/// The exit code that wins.
int gravest(int a, int b);

/// What decides the exit code.
struct Ending {
  bool interrupted = false;
  bool exclusion_broken = false;  ///< by a strategy that promises it
  bool rank_lost = false;         ///< one of several
  bool errors = false;            ///< failed or unknown outcomes, runs not started, file not saved
  bool nothing_granted = false;   ///< in one of the runs
  bool invalid = false;
  bool strict = false;  ///< an invalid run has its own exit code
  bool threshold_missed = false;
  bool undecided = false;  ///< a threshold was neither kept nor missed
  /// A capacity's planned rate was measured as too high, whatever else went wrong.
  bool planned_too_high = false;
};

/// The first that applies: interrupted (unless a rank was lost); exclusion broken; planned rate too
/// high; errors, a lost rank or nothing granted; invalid, if `strict`; threshold missed; undecided.
int exit_code_of(const Ending& ending);

/// The ending by the runs of a result. The caller adds missed thresholds and a failure to save.
Ending ending_of(const results::Result& result);

/// Adds what a capacity shows: whether its objective is kept at the planned rate, or at any.
void add_to(Ending& ending, const results::Capacity& capacity);

// This program, this machine and the time, as results and messages tell them.

results::Build build_facts();
/// "0.1.0 (05a4e27, Release)"
std::string build_line(const results::Build& build);

/// "2026-11-21T01:25:30Z"
std::string rfc3339(WallTime time);

/// "20261121T012530Z-4f3a9c": sorts by time; `random` keeps runs of the same second apart.
std::string run_id(WallTime time, std::uint32_t random);

// The beginning and the end of every command that saves a result.

/// A result with its id and time, the command, this build and this machine, without servers.
results::Result begin_result(const OutputOptions& options);

/// A UsageError if the --report page cannot be written, or if such a result lacks a column of
/// --columns. `result` is still empty.
void check_output(const OutputOptions& options, const results::Result& result);

/// check_output(), and the path of the result file; in the temporary folder if results/runs cannot
/// be written. A UsageError if the --out file cannot be written.
std::string out_path(const OutputOptions& options, const results::Result& result);

/// Saves the result, also as the page of --report, and shows `text`, or without one the result as
/// the options say. Warns if a rank was lost. Returns the exit code.
int finish(results::Result& result, const OutputOptions& options, ResultFile& file, Ending ending,
           const std::optional<std::string>& text = {});

/// Writes the result as a page, unless `page` is empty, and says where. False if it could not be
/// written there. `out` is the path of the result file.
bool save_report(const results::Result& result, const std::string& page, const std::string& out,
                 Console& console);

/// Likewise for the page of any results.
bool save_page(const std::string& page, const std::string& path, Console& console);

}  // namespace lockbench::cli
