#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options/options.h"
#include "results/file/model.h"

namespace lockbench::cli {

/// One option of the command line, which is also one key of the TOML file and one key of the result
/// file's workload. All that is known of it stands here.
struct Option {
  /// What its key may hold in a TOML file.
  enum class Type { text, integer, integer_or_text, number, flag };

  std::string_view name;  ///< without dashes in front
  std::string_view value_name;
  std::string help{};
  Type type = Type::text;
  bool repeatable = false;
  bool in_file = true;
  /// The positional arguments.
  bool positional = false;
  /// Under which heading help shows it.
  std::string_view group = "Options";

  /// Takes one value as text; called once per value. The error quotes it and says what is allowed.
  std::function<tl::expected<void, std::string>(RunOptions&, const std::string&)> set{};
  /// For the result file: durations in seconds, no secrets.
  std::function<results::OptionValue(const RunOptions&)> get{};
};

/// A subcommand: its name, its options and what it does with them. The result is the exit code.
struct Command {
  std::string_view name, summary;
  std::vector<Option> options{};
  /// Its options make up one load, and must fit together.
  bool loads = false;
  std::function<tl::expected<int, UsageError>(const RunOptions&)> execute{};
  /// Not among those that help shows: for the project's own files.
  bool hidden = false;
};

/// Every option of `lockbench run`.
std::vector<Option> run_options();

/// Those among them that say how held leases are renewed.
std::vector<Option> renewing_options();

/// Those among them for locks on several nodes: Redlock's, and those that wait for replicas.
std::vector<Option> replication_options();

/// Those among them that name the user's own servers: one for each kind of store.
std::vector<Option> server_options();

/// Names the user's own Redis for the protected counter.
Option counter_redis_option();

/// Those among them that say who gets metrics.
std::vector<Option> metrics_options();

/// Those among them that say what is to strike a run.
std::vector<Option> fault_options();

/// Every option of `lockbench capacity`.
std::vector<Option> capacity_options();

/// What `choose` can be asked to look for.
std::vector<Option> requirement_options();

/// Those among them that say where the result goes as a page.
std::vector<Option> report_options();

/// The options of that name from `run_options()`, for a subcommand that shares them.
std::vector<Option> some_run_options(std::initializer_list<std::string_view> names);

/// What the result file says of how it was made: every option of `run`, under its own name with
/// underscores.
std::map<std::string, results::OptionValue> workload_record(const RunOptions& options);

}  // namespace lockbench::cli
