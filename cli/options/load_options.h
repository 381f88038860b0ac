#pragma once

#include <type_traits>

#include "cli/options/option.h"
#include "exporter/http_endpoint.h"
#include "history/operation.h"
#include "loadgen/run/fault.h"
#include "loadgen/run/workload.h"
#include "results/stats/threshold.h"
#include "results/tables/show.h"

namespace lockbench::cli {

// The options that several commands share. Each command has its own struct, which includes some of
// these, selects the options that it takes from them, and declares others next to its code.

using results::Format;

/// Where a result goes and how it is shown.
struct OutputOptions {
  std::string out;     ///< the result file; empty: results/runs/<id>.json
  std::string report;  ///< the result as a page; empty: none
  Format format = Format::table;
  std::vector<std::string> columns;  ///< keys, or "all"; none: the usual ones
  bool quiet = false, strict = false, resume = false;
  bool judges = false;  ///< the command judges something, so that --format may be junit
  std::string config;   ///< the TOML file
  std::string events;   ///< a file, "-" or a descriptor; empty: none
  std::vector<std::string> command;  ///< the command line that reproduces the result

  void declare(OptionList& options);
};

/// Adds the positional arguments FILE..., which cannot be given in the TOML file.
void declare_files(OptionList& options, std::vector<std::string>& files, std::string help,
                   std::string default_text = "");

/// URLs of the user's own servers, by the name of the store, secrets included.
using ServerUrls = std::map<std::string, std::vector<std::string>, std::less<>>;
void declare_servers(OptionList& options, ServerUrls& servers);

/// --client: the commands of client programs, as given. A name of a strategy may stand for one.
void declare_clients(OptionList& options, std::vector<std::string>& clients);
/// Asks each program what it is, registers it as a strategy, and adds its name to `strategies`. It
/// gets the user's URLs. Starts processes, which have ended when it returns.
void take_clients(const std::vector<std::string>& clients, const ServerUrls& servers,
                  std::vector<std::string>& strategies);

/// Whether the pattern (a name, a glob or "all") matches this name.
bool matches(const std::string& pattern, std::string_view name);

/// How many ranks were launched; 1 without a launcher.
int rank_count();

/// Where the metrics go.
struct MetricsOptions {
  std::optional<exporter::ListenAddress> listen;
  Duration linger{};
  /// By backend: the value of the label `deployment` for its stores. Empty: no such label.
  std::map<std::string, std::string, std::less<>> deployments;
  bool ready_at_once = true;  ///< false: a strategy is ready once it has worked

  void declare(OptionList& options);
};

/// For the commands that put servers under load.
struct LoadOptions {
  std::vector<std::string> strategies;  ///< names and globs as given; none: all
  std::vector<std::string> programs;    ///< of --client; their names are added to the strategies
  loadgen::Workload workload;
  std::vector<loadgen::NamedLoad> loads;  ///< each changes `workload`; `run` has at least one
  loadgen::Decided decided;               ///< values set by options, which override the loads'
  /// Of a sweep: each load is run at each of them. With fewer than two, `workload` has the value.
  std::vector<double> rates;
  std::vector<int> client_counts, pools;
  std::vector<loadgen::Fault> faults;  ///< in the order in which they are injected
  ServerUrls servers;
  std::optional<std::string> counter_redis;  ///< a URL, secrets included
  int replicas = 2;                          ///< of the private Redis of redis-wait
  int wait_replicas = 0;                     ///< how many must acknowledge; 0: all
  bool redis_cluster = false;                ///< the private Redis is a cluster
  bool tls = false;                          ///< private servers speak TLS
  /// Clients reach private servers through proxies, even if these add no delay.
  bool through_proxies = false;
  MetricsOptions metrics;
  OutputOptions output;

  /// `workload` as each point of the loads changes it.
  std::vector<loadgen::Workload> points() const;

  /// The user's own servers of that store; none: private ones.
  std::vector<std::string> servers_of(std::string_view store) const;

  /// What clients do, how they lock, and on which servers.
  void declare(OptionList& options);
  /// Refuses options that contradict each other, or that need another one.
  void complete(const OptionList& options);

 private:
  void declare_load(OptionList& options);
  void declare_transactions(OptionList& options);
  void declare_keys(OptionList& options);
  void complete_keys(const OptionList& options);
  void check_cluster() const;
  void declare_locks(OptionList& options);
  void declare_stores(OptionList& options);
  /// Adapts and checks the options if the load is split over ranks.
  void complete_ranks(const OptionList& options);
  void check_several_locks(const OptionList& options) const;
  /// Leaves out URLs that the environment has for other commands.
  void leave_out_unused(const OptionList& options);
};

struct RunOptions : LoadOptions {
  static constexpr std::string_view kCommand = "run";
  std::vector<results::Threshold> thresholds;
  std::string hdr;      ///< directory for HdrHistogram files; empty: none
  std::string history;  ///< file of all operations; empty: none
  bool allow_no_grants = false;

  RunOptions() { output.judges = true; }
  void declare(OptionList& options);
  void complete(const OptionList& options);

 private:
  void declare_sweep(OptionList& options);
};

/// Without --duration, a run with --iterations or a trace ends after this time.
inline constexpr Duration kMaxDurationOfIterations = std::chrono::hours(1);
/// Without --duration, any other run lasts until it has the contended grants for a verdict, at most
/// this long.
inline constexpr Duration kLongestByDefault = std::chrono::seconds(10);

/// --history of the commands that take it.
void declare_history(OptionList& options, std::string& history);

/// The options of a command, bound to `values`, which must outlive the list.
template <class Options>
OptionList options_of(Options& values) {
  OptionList options(Options::kCommand);
  values.declare(options);
  return options;
}

/// Every option of `run`, as used or at its default.
OptionRecord run_record(const LoadOptions& values);

/// The workload of the result file: run_record(), and the command's own options.
template <class Options>
OptionRecord workload_record(Options values) {
  OptionRecord record = options_of(values).record();
  if constexpr (std::is_base_of_v<LoadOptions, Options>) {
    record.merge(run_record(values));  // existing keys stay
  } else {
    record.merge(run_record({}));
  }
  return record;
}

/// Checks that the options in `values` fit together, and records the command line.
template <class Options>
void complete(Options& values, const OptionList& options) {
  if constexpr (requires { values.output; }) values.output.command = options.words();
  if constexpr (requires { values.complete(options); }) values.complete(options);
}

/// Reads a command's arguments into `values`, to which `options` are bound. Starts nothing, and
/// reads only files that the arguments name.
template <class Options>
void read(Options& values, OptionList& options, std::span<const std::string> args) {
  options.read(args);
  complete(values, options);
}

}  // namespace lockbench::cli
