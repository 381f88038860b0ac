#pragma once

#include <filesystem>

#include "cli/console/console.h"
#include "cli/console/deploy.h"
#include "cli/options/load_options.h"
#include "results/report/report.h"
#include "results/tables/show.h"
#include "strategies/duration.h"

namespace lockbench::cli {

/// Of each strategy in the result's runs.
results::KnownFlaws known_flaws(const results::Result& result);

/// How stdout shows a result: colors, width and UTF-8 as far as it supports them.
results::Look look_of(const OutputOptions& options);

/// The result as stdout shows it. out_path() has checked the columns.
std::string render(const results::Result& result, const OutputOptions& options);

/// To stdout; to a terminal without control characters but our own. False, with a message on
/// stderr, if that failed. A console's status line must be empty.
bool print_text(const std::string& given);

/// One line for each run that missed a threshold, with what was measured. Controls are exempt
/// unless they were named.
std::vector<std::string> missed_thresholds(const std::vector<results::Threshold>& thresholds,
                                           const results::Result& result,
                                           const std::vector<Selected>& selected);

/// Writes a file, and calls `told` with the place where it is now. False, with a message that
/// begins with `what`, if that is not the place asked for.
bool save_file(const std::filesystem::path& path, const std::string& text, Console& console,
               std::string_view what = "",
               const std::function<void(const std::string&)>& told = nullptr);

/// As --out.
inline constexpr std::string_view kStdout = "-";

/// Where a command's result goes. It is kept there after each step, so that what is over outlives
/// whatever ends the command; results that go to stdout are written once, at the end. For one
/// thread at a time.
class ResultFile {
 public:
  /// `console` must outlive it.
  ResultFile(std::string path, Console& console) : path_(std::move(path)), console_(console) {}

  const std::string& path() const { return path_; }
  bool is_stdout() const { return path_ == kStdout; }
  Console& console() const { return console_; }

  /// Saves what there is so far. Only the first failure is said, as the end may have room again.
  void keep(const results::Result& result);
  /// Whether keep() has taken at most a twentieth of the time so far: for those whose measurements
  /// go on meanwhile.
  bool has_time() const;

  /// At the end: says where the result is. False if it could not be written there.
  bool save(const results::Result& result);

 private:
  const std::string path_;
  Console& console_;
  bool failed_ = false;
  TimePoint kept_at_{};
  Duration took_{};
};

/// Scripts rely on these.
namespace exit_code {
inline constexpr int kFine = 0, kUsage = 1, kErrors = 2, kExclusionBroken = 3, kInvalid = 4,
                     kThresholdMissed = 99, kInterrupted = 105;
}  // namespace exit_code

/// The one that applies if several do.
int gravest(int a, int b);

/// What decides the exit code.
struct Ending {
  bool interrupted = false;
  bool exclusion_broken = false;  ///< by a strategy that promises it
  bool rank_lost = false;         ///< one of several
  bool errors = false;            ///< failed or unknown outcomes, runs not started, file not saved
  bool nothing_granted = false;   ///< by one of the runs
  bool invalid = false;
  bool strict = false;  ///< an invalid run has an exit code of its own
  bool threshold_missed = false;
  /// A capacity's planned rate was measured as too high, whatever else went wrong.
  bool planned_too_high = false;
};

/// The first that applies: interrupted, unless that was because a rank was lost, exclusion broken,
/// planned rate too high, errors or nothing granted, invalid, threshold missed.
int exit_code_of(const Ending& ending);

/// From the runs of a result. The caller adds missed thresholds and a failure to save.
Ending ending_of(const results::Result& result);

// The beginning and the end of every command that saves a result.

/// A result with its id and time, the command, this build and this machine.
results::Result begin_result(const OutputOptions& options);

/// The path of the result file. A UsageError if it cannot be written, or the page of --report
/// cannot, or if such a result has no column that --columns names. `result` is still empty.
std::string out_path(const OutputOptions& options, const results::Result& result);

/// Saves the result, and as a page if --report asks for one, and shows it: `text`, or without one
/// as the options say. Says that a rank was lost. Returns the exit code. What may take long or
/// fail, such as a push, comes before, and after a keep().
int finish(results::Result& result, const OutputOptions& options, ResultFile& file, Ending ending,
           const std::optional<std::string>& text = {});

/// Whether both paths lead to the same file, so that what is written to one replaces the other's.
/// False for /dev/null, which loses both.
bool same_file(const std::string& one, const std::string& other);

/// For before the load: a UsageError if --report is given and cannot be written, or is `out`.
void check_report(const std::string& page, const std::string& out);

/// Writes the result as a page, unless `page` is empty, and says where. False if it could not be
/// written there. `out` is the path of the result file.
bool save_report(const results::Result& result, const std::string& page, const std::string& out,
                 Console& console);

/// Likewise for the page of any results.
bool save_page(const std::string& page, const std::string& path, Console& console);

}  // namespace lockbench::cli
