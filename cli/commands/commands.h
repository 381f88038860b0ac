#pragma once

#include <fmt/format.h>

#include "choose/requirements.h"
#include "cli/console/publish.h"
#include "cli/options/load_options.h"
#include "watch/families.h"
#include "watch/ledger.h"
#include "watch/source.h"

namespace lockbench::hazards {
struct Repeated;
}

namespace lockbench::cli {

// Includes what nearly every command uses: options, servers, the console and results.

// These options are declared here because tests read them: the workload that `watch` writes must
// suit capacity and choose.

struct CapacityOptions : LoadOptions {
  static constexpr std::string_view kCommand = "capacity";
  std::vector<results::Threshold> objective;  ///< at least one; all must be kept
  std::optional<Duration> time;  ///< of the search of each strategy; nothing: the command chooses
  std::optional<double> planned_rate;

  CapacityOptions() { workload.clients = 32; }
  void declare(OptionList& options);
};

struct ChooseOptions {
  static constexpr std::string_view kCommand = "choose";
  choose::Requirements requirements;
  std::vector<std::string> files;  ///< none: the reference results
  bool measure = false, why = false;
  Duration measure_time = std::chrono::minutes(2);
  ServerUrls servers;  ///< for --measure, and to check the conditions
  bool tls = false;
  std::vector<std::string> programs;  ///< of --client: candidates beside the strategies
  OutputOptions output;               ///< `out` is that of --measure

  void declare(OptionList& options);
  void complete(const OptionList& options);
  /// The command needs at least one of these.
  void declare_requirements(OptionList& options);
};

struct WatchOptions {
  static constexpr std::string_view kCommand = "watch";
  /// How long --once watches without --duration.
  static constexpr Duration kOnce = std::chrono::seconds(3);

  ServerUrls servers;
  watch::Request request;
  watch::LedgerOptions ledger;
  std::optional<std::string> name;        ///< the expression
  std::optional<std::string> deployment;  ///< its name, for metrics and texts
  std::optional<Duration> duration;
  bool once = false, no_screen = false;
  std::string workload;  ///< the file to write; empty: none
  MetricsOptions metrics;
  OutputOptions output;  ///< `out` is --record

  void declare(OptionList& options);
  void complete(const OptionList& options);

  /// How locks are grouped: by --name, by --locks, or by what their names begin with.
  watch::Families grouping() const;
};

/// A subcommand: what help says about it, its options and what it does.
struct Command {
  std::string_view name;
  std::string_view task;  ///< the heading under which help shows it
  std::string_view summary, example;
  /// What a newcomer asks, and it answers. Empty: `lockbench` alone does not show the command.
  std::string_view asks{};
  bool over_ranks = false;  ///< under MPI, all ranks take part
  /// Returns the exit code, or throws a UsageError.
  std::function<int(std::span<const std::string> args)> execute{};
  /// Calls `use` with its options at their defaults.
  std::function<void(const std::function<void(const OptionList& options)>& use)> describe{};
  /// Reads the arguments likewise, and does nothing.
  std::function<void(std::span<const std::string> args)> check{};
};

/// The headings of help, in their order.
inline constexpr std::string_view kMeasure = "Measure", kCompareResults = "Results",
                                  kDecide = "Choose and operate";

/// Completes `text` with the command's name and code. `Options` declares its options (see
/// load_options.h).
template <class Options>
Command make_command(Command text, int (*run)(const Options&)) {
  text.name = Options::kCommand;
  text.execute = [run, summary = text.summary,
                  example = text.example](std::span<const std::string> args) {
    Options values;
    OptionList options = options_of(values);
    options.read(args);
    if (options.help_wanted()) {
      fmt::print("{}", options.help(summary, example));
      return exit_code::kFine;
    }
    complete(values, options);
    if constexpr (requires { values.args; }) values.args.assign(args.begin(), args.end());
    return run(values);
  };
  text.describe = [](const std::function<void(const OptionList&)>& use) {
    Options values;
    use(options_of(values));
  };
  text.check = [](std::span<const std::string> args) {
    Options values;
    OptionList options = options_of(values);
    options.read(args);
    if (!options.help_wanted()) complete(values, options);
  };
  return text;
}

Command tour_command();
Command overview_command();
Command run_command();
Command list_command();
Command merge_command();
Command renewal_command();
Command quorum_command();
Command capacity_command();
Command simulate_command();
Command check_command();
Command check_client_command();
Command compare_command();
Command report_command();
Command show_command();
Command choose_command();
Command probe_command();
Command hazards_command();
Command doctor_command();
Command clean_command();
Command watch_command();

/// A cell of the hazard matrix as the result file has it. It has been played.
results::Hazard to_result(const hazards::Repeated& repeated);

// For the manual and the shells, in place of lists of their own.

/// Writes a manual page for lockbench and for each command to `folder`, which exists.
void write_manual(const std::vector<Command>& commands, const std::string& folder);

/// Prints what can take the place of the last word of a command line, each with a tab and what it
/// means; "/" stands for the names of files. `words` lack the program's name.
void print_completions(const std::vector<Command>& commands, std::span<const std::string> words);

/// The command of options that stand without one.
inline constexpr std::string_view kDefaultCommand = "overview";

/// Every command, in the order of help.
std::vector<Command> all_commands();
/// The newcomers' questions, each with the command that answers it, but not that of `without`.
std::string questions(std::string_view without = "");

/// Runs lockbench: `args` lack the program's name. Prints, and returns the exit code.
int dispatch(std::span<const std::string> args);

}  // namespace lockbench::cli
