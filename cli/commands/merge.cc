#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "cli/commands/commands.h"
#include "cli/commands/finish.h"
#include "cli/console/facts.h"
#include "cli/console/publish.h"
#include "loadgen/cluster/assembly.h"
#include "results/file/json.h"

namespace lockbench::cli {
namespace {

using loadgen::cluster::PartFile;

struct MergeOptions {
  static constexpr std::string_view kCommand = "merge";
  std::vector<std::string> files;
  OutputOptions output;

  void declare(OptionList& options) {
    declare_files(
        options, files,
        "the files that the ranks of a run left, OUT.rank-N, and perhaps its result file");
    options.only({"out", "report", "format", "columns", "quiet"}, [&] { output.declare(options); });
  }
  void complete(const OptionList& /*options*/) const {
    if (files.empty()) throw UsageError("merge needs files: lockbench merge FILE...");
    if (output.out.empty()) throw UsageError("merge needs --out FILE");
  }
};

struct Given {
  std::vector<PartFile> parts;
  std::optional<results::Result> result;  ///< of the runs before
};

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError("{}: cannot be read", path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Given read_all(const std::vector<std::string>& files) {
  Given given;
  for (const std::string& path : files) {
    const std::string text = read_text(path);
    if (loadgen::cluster::is_part(text)) {
      given.parts.push_back(
          must(loadgen::cluster::read_part(text, build_line(build_facts())), path));
      continue;
    }
    results::Result result = must(results::load(path));
    if (given.result) throw UsageError("{}: a second result file; one at most is allowed", path);
    given.result = std::move(result);
  }
  if (given.parts.empty()) {
    throw UsageError("none of the files is that of a rank (OUT.rank-N)");
  }
  return given;
}

/// With the run that the ranks' files are of, unless the result file has it: rank 0 saw the
/// servers, too.
results::Result put_together(Given given) {
  results::Result heading =
      must(results::from_json(given.parts.front().order.heading), "a rank's file has no heading");
  results::Run run = must(loadgen::cluster::merge(given.parts));
  if (given.result && given.result->id != heading.id) {
    throw UsageError("the result file is of {}, and the ranks' files of {}", given.result->id,
                     heading.id);
  }
  results::Result result = given.result ? *std::move(given.result) : std::move(heading);
  const bool there = std::any_of(result.runs.begin(), result.runs.end(), [&](const auto& other) {
    return other.strategy == run.strategy && other.repetition == run.repetition &&
           other.load == run.load;
  });
  const bool lost = std::any_of(run.ranks.begin(), run.ranks.end(),
                                [](const results::Rank& rank) { return rank.lost; });
  if (!there) result.runs.push_back(std::move(run));
  if (lost) result.exit_code = exit_code::kErrors;
  return result;
}

int merge(const MergeOptions& options) {
  const results::Result result = put_together(read_all(options.files));
  const std::string out = out_path(options.output, result);
  Console console(stderr, is_terminal(stderr), options.output.quiet);
  ResultFile file(out, console);
  const int saved = finish(result, options.output, file, cli::ending_of(result));
  // The exit code that the file records wins.
  return result.exit_code ? static_cast<int>(*result.exit_code) : saved;
}

}  // namespace

Command merge_command() {
  return make_command<MergeOptions>(
      {.task = kCompareResults,
       .summary =
           "Put together what the ranks of a run under MPI had recorded when it was cut off.",
       .example = "lockbench merge out.json.rank-* --out merged.json"},
      merge);
}

}  // namespace lockbench::cli
