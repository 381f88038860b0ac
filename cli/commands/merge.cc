#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "cli/commands/commands.h"
#include "cli/commands/finish.h"
#include "cli/console/exit_code.h"
#include "cli/console/facts.h"
#include "loadgen/cluster/partial.h"
#include "results/file/json.h"
#include "results/file/load.h"

namespace lockbench::cli {
namespace {

using loadgen::cluster::Partial;

struct MergeOptions {
  static constexpr Commands kCommand = kMerge;
  std::vector<std::string> files;
  OutputOptions output;

  void declare(OptionList& options) {
    declare_files(
        options, files,
        "the files that the ranks of a run left, OUT.rank-N, and perhaps its result file");
    output.declare(options);
  }
  tl::expected<void, UsageError> complete(const OptionList& /*options*/) {
    if (files.empty()) return refused("merge needs files: lockbench merge FILE...");
    if (!output.out.empty()) return {};
    return refused("merge needs --out FILE");
  }
};

struct Given {
  std::vector<Partial> partials;
  std::optional<results::Result> result;  ///< of the runs before
};

tl::expected<std::string, std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return tl::unexpected(path + ": cannot be read");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

tl::expected<Given, std::string> read_all(const std::vector<std::string>& files) {
  Given given;
  for (const std::string& path : files) {
    const auto text = read_text(path);
    if (!text) return tl::unexpected(text.error());
    if (loadgen::cluster::is_partial(*text)) {
      auto partial = loadgen::cluster::read_partial(*text, build_line(build_facts()));
      if (!partial) return tl::unexpected(fmt::format("{}: {}", path, partial.error()));
      given.partials.push_back(*std::move(partial));
      continue;
    }
    auto result = results::load(path);
    if (!result) return tl::unexpected(result.error());
    if (given.result)
      return tl::unexpected(path + ": a second result file; one at most is allowed");
    given.result = *std::move(result);
  }
  if (given.partials.empty()) {
    return tl::unexpected<std::string>("none of the files is that of a rank (OUT.rank-N)");
  }
  return given;
}

/// With the run that the ranks' files are of, unless the result file has it: rank 0 saw more.
tl::expected<results::Result, std::string> put_together(Given given) {
  auto heading = results::from_json(given.partials.front().order.heading);
  if (!heading) return tl::unexpected("a rank's file has no heading: " + heading.error());
  auto run = loadgen::cluster::merge(std::move(given.partials));
  if (!run) return tl::unexpected(run.error());
  if (given.result && given.result->id != heading->id) {
    return tl::unexpected(fmt::format("the result file is of {}, and the ranks' files of {}",
                                      given.result->id, heading->id));
  }
  results::Result result = given.result ? *std::move(given.result) : *std::move(heading);
  const bool there = std::any_of(result.runs.begin(), result.runs.end(), [&](const auto& other) {
    return other.strategy == run->strategy && other.repetition == run->repetition &&
           other.load == run->load;
  });
  const bool lost = std::any_of(run->ranks.begin(), run->ranks.end(),
                                [](const results::Rank& rank) { return rank.lost; });
  if (!there) result.runs.push_back(*std::move(run));
  if (lost) result.exit_code = exit_code::kErrors;
  return result;
}

tl::expected<int, UsageError> merge(const MergeOptions& options) {
  auto given = read_all(options.files);
  if (!given) return refused("{}", given.error());
  auto result = put_together(*std::move(given));
  if (!result) return refused("{}", result.error());
  const auto out = out_path(options.output, *result);
  if (!out) return tl::unexpected(out.error());
  Console console(stderr, is_terminal(stderr), options.output.quiet);
  ResultFile file(*out, console);
  const Ending ending = cli::ending_of(*result);
  const int code = result->exit_code ? static_cast<int>(*result->exit_code) : exit_code_of(ending);
  // The exit code that the file records wins.
  const int saved = finish(*result, options.output, file, ending);
  return result->exit_code ? code : saved;
}

}  // namespace

Command merge_command() {
  return make_command<MergeOptions>(
      {.name = "merge",
       .task = kCompareResults,
       .summary =
           "Put together what the ranks of a run under MPI had recorded when it was cut off.",
       .example = "lockbench merge out.json.rank-* --out merged.json"},
      merge);
}

}  // namespace lockbench::cli
