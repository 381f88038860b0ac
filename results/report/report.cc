#include "results/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <stdexcept>

#include "results/file/loads.h"
#include "results/report/limits.h"
#include "results/report/parts.h"
#include "results/tables/loads.h"

namespace lockbench::results::report {
namespace {

void add_experiment_headline(const Result& result, Remarks& headline) {
  if (!result.experiment) return;
  constexpr std::size_t kMost = 4;
  Remarks said = remarks_of(*result.experiment);
  if (said.size() > kMost) said.resize(kMost);
  std::move(said.begin(), said.end(), std::back_inserter(headline));
}

void add_trust(const Result& result, Remarks& headline) {
  std::size_t invalid = 0;
  for (const Run& run : result.runs) invalid += run.generator.valid ? 0 : 1;
  if (result.interrupted) {
    headline.push_back(
        {Tone::doubtful, "The measurement was interrupted: this is what was measured until then."});
  }
  if (invalid > 0) {
    headline.push_back(
        {Tone::doubtful, fmt::format("{} of {} runs are invalid: their figures are not the lock's "
                                     "own. The reasons are listed below.",
                                     invalid, result.runs.size())});
  }
  if (!result.skipped.empty()) {
    headline.push_back({Tone::plain, fmt::format("{} were skipped; the reasons are listed below.",
                                                 result.skipped.size())});
  }
}

Part part_of(const Source& given) {
  Source source = given;
  Part part;
  Remarks left_out;
  trim(source.result, left_out);
  const Result& result = source.result;
  const std::string name = std::filesystem::path(source.file).filename().string();
  part.title = name.empty() ? result.id : name;
  if (!source.load.empty()) part.title += " · " + source.load;
  part.subtitle = fmt::format("{} · {}, {} cores", result.started_at, result.environment.cpu,
                              result.environment.cores);
  const std::vector<Group> groups = groups_of(result);
  const std::vector<Picked> order = pick(groups);
  add_run_headline(result, part.headline);
  add_hazard_headline(result, part.headline);
  add_capacity_headline(result, part.headline);
  add_watch_headline(result, part.headline);
  add_experiment_headline(result, part.headline);
  add_trust(result, part.headline);
  part.headline.insert(part.headline.end(), left_out.begin(), left_out.end());
  if (part.headline.empty())
    part.headline.push_back({Tone::doubtful, "The file contains no measurements."});
  if (groups.size() > 1) part.strategies = order;
  add_hazard_section(result, part);
  add_watch_sections(result, part);
  add_capacity_sections(result, part);
  add_experiment_section(result, part);
  add_run_sections(source, order, part);
  add_time_section(groups, order, part);
  add_cost_sections(source.result, groups, part);
  add_facts_section(source, part);
  return part;
}

/// The loads of a result side by side, and what follows from them.
Part part_of_loads(const Source& source) {
  Part part;
  const std::string name = std::filesystem::path(source.file).filename().string();
  part.title = (name.empty() ? source.result.id : name) + " · all loads";
  part.subtitle = source.result.started_at;
  for (const std::string& line : conclusions(source.result, source.flaws)) {
    part.headline.push_back({Tone::plain, line});
  }
  Section section{.title = "Loads", .intro = {}, .blocks = {}};
  for (const TitledTable& one : load_tables(source.result, source.flaws)) {
    section.blocks.emplace_back(captioned(one.title, one.table));
  }
  part.sections.push_back(std::move(section));
  return part;
}

/// One for each load, as figures of different loads do not belong into one chart.
std::vector<Source> sources_by_load(const Source& source) {
  if (!has_several_loads(source.result)) return {source};
  std::vector<Source> sources;
  for (Result& result : split_by_load(source.result)) {
    Source& one = sources.emplace_back(source);
    one.load = label(result.runs.front().load);
    one.result = std::move(result);
  }
  return sources;
}

}  // namespace

View make_view(std::span<const Source> sources) {
  if (sources.empty() || sources.size() > kMostFiles) {
    throw std::invalid_argument("a report of no result, or of too many");
  }
  View view;
  std::vector<Source> all;
  for (const Source& source : sources) {
    std::vector<Source> its = sources_by_load(source);
    if (its.size() > 1) view.parts.push_back(part_of_loads(source));
    all.insert(all.end(), its.begin(), its.end());
  }
  // The page's size is bounded.
  const std::size_t left_out = all.size() - std::min(all.size(), kMostFiles);
  all.resize(all.size() - left_out);
  for (const Source& source : all) view.parts.push_back(part_of(source));
  if (left_out > 0) {
    view.parts.front().headline.push_back(
        {Tone::doubtful, fmt::format("{} more results or loads are left out to limit the page: "
                                     "make a report of fewer files.",
                                     left_out)});
  }
  view.overview = overview_of(all);
  view.title = sources.size() == 1 ? "lockbench: " + view.parts.front().title
                                   : fmt::format("lockbench: {} results", sources.size());
  return view;
}

}  // namespace lockbench::results::report
