#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "choose/requirements.h"
#include "exporter/listen_address.h"
#include "loadgen/experiments/extrapolation.h"
#include "loadgen/run/fault.h"
#include "loadgen/run/workload.h"
#include "results/stats/regression.h"
#include "results/stats/threshold.h"

namespace lockbench::cli {

/// How long a run that is to end after so many sections may take, unless --duration says otherwise.
inline constexpr Duration kLongestCountedRun = std::chrono::hours(1);

enum class Format { table, json, csv, markdown };

/// What `lockbench renewal` measures.
struct RenewalOptions {
  std::vector<std::uint64_t> held;  ///< none: 1, 10, … 100,000
  std::uint64_t most_threads = 10'000;
  int pairs = 3;
};

/// What `lockbench quorum` measures.
struct QuorumOptions {
  std::vector<int> nodes;                       ///< none: 1, 3, 5, 7
  Duration duration = std::chrono::seconds(1);  ///< of each point
  Duration slow = std::chrono::milliseconds(20);
};

/// What `lockbench capacity` looks for.
struct CapacityOptions {
  std::vector<results::Threshold> objective;  ///< all of them; there must be one
  int clients = 32;
  Duration duration = std::chrono::seconds(3);  ///< of each step
  bool sweep = true;
  std::vector<int> sweep_clients, sweep_keys;  ///< none: see capacity_sweep()
  std::optional<double> planned_rate;
  std::vector<loadgen::Extrapolation> extrapolations;
};

/// What `lockbench compare` compares.
struct CompareOptions {
  std::vector<std::string> files;  ///< as given: there must be two
  std::vector<results::Regression> fail_on;
  double confidence = 0.95;
  bool force = false;
};

/// What `lockbench choose` looks for, and in which files.
struct ChooseOptions {
  choose::Requirements requirements;
  std::vector<std::string> files;  ///< as given; none: the reference results
};

/// Who is to have metrics.
struct MetricsOptions {
  std::optional<exporter::ListenAddress> listen;
  Duration linger{};
  std::optional<std::string> push;  ///< a URL, secrets included
};

/// What `lockbench probe` does otherwise than a run.
struct ProbeOptions {
  int clients = 2;
  Duration acquire_timeout = std::chrono::seconds(2);
  std::optional<Duration> duration;  ///< nothing: until it is stopped
};

/// What `lockbench hazards` plays.
struct HazardOptions {
  std::vector<std::string> scenarios;  ///< names and globs as given; none: all
  std::string explain;                 ///< "SCENARIO/STRATEGY", or empty
  bool quick = false;
  std::optional<int> at_once;  ///< nothing: what plays of this kind do not disturb each other at
  int repeat = 1;              ///< plays of each cell
  bool dose = false;
  std::optional<int> dose_plays;    ///< of each point
  std::vector<double> dose_ratios;  ///< none: the usual ones
};

/// What `lockbench report` shows, and where `--report` of other subcommands goes.
struct ReportOptions {
  std::vector<std::string> files;  ///< as given
  std::string page;                ///< empty: none
};

/// All that the user asked for, whichever subcommand it is meant for.
struct RunOptions {
  std::vector<std::string> strategies;  ///< names and globs as given; none: all
  loadgen::Workload workload;
  /// URLs of the user's own servers by the name of their store, secrets included.
  std::map<std::string, std::vector<std::string>, std::less<>> servers;
  std::optional<std::string> counter_redis;  ///< a URL, secrets included
  std::vector<results::Threshold> thresholds;
  int replicas = 2;  ///< of the private server of those strategies that need some
  std::string out;   ///< empty: results/runs/<id>.json
  Format format = Format::table;
  RenewalOptions renewal;
  QuorumOptions quorum;
  CapacityOptions capacity;
  CompareOptions compare;
  ChooseOptions choose;
  std::string hdr;  ///< directory for HdrHistogram's formats; empty: none
  MetricsOptions metrics;
  ProbeOptions probe;
  HazardOptions hazards;
  std::vector<loadgen::Fault> faults;  ///< in the order in which they strike
  ReportOptions report;
  bool quiet = false, strict = false;
  std::string config;

  /// The user's own servers of that store; none: private ones.
  std::vector<std::string> servers_of(std::string_view store) const {
    const auto given = servers.find(store);
    return given == servers.end() ? std::vector<std::string>() : given->second;
  }
};

/// A mistake of the user's, as one line that names it and says what is allowed.
struct UsageError {
  std::string message;
};

}  // namespace lockbench::cli
