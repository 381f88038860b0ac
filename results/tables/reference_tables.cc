#include "results/tables/reference_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "results/file/option_values.h"
#include "results/tables/experiments.h"
#include "results/tables/hazards.h"
#include "results/tables/loads.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

constexpr std::string_view kBegin = "<!-- reference: ", kBeginEnd = " -->", kEnd = "<!-- end -->";

/// Columns with a higher rank have no room on a page; `lockbench show` has them.
constexpr int kHighestRank = 10;

/// The columns that a page has room for.
Table narrowed(const Table& table, const std::function<bool(std::size_t)>& is_wanted) {
  std::vector<std::size_t> kept;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (c == 0 || (table.columns[c].rank <= kHighestRank && is_wanted(c))) kept.push_back(c);
  }
  return with_columns(table, kept);
}

/// Without columns that are the same in every row.
Table narrowed_points(const Experiment& experiment) {
  const Table table = shown(point_table(experiment));
  return narrowed(table, [&](std::size_t c) {
    std::set<std::string> texts;
    for (const auto& row : table.rows) texts.insert(row[c].text);
    return texts.size() > 1 || table.rows.size() < 2;
  });
}

/// The number of nodes for which a page shows faults; of other quorums it shows only the cost.
constexpr std::uint64_t kShownNodes = 5;

/// A page shows the cost of a quorum to a single client: contention would hide it.
Experiment for_a_page(Experiment experiment) {
  if (auto* points = std::get_if<std::vector<QuorumPoint>>(&experiment.points)) {
    std::erase_if(*points, [](const QuorumPoint& point) {
      return point.clients > 1 || (!point.healthy() && point.nodes != kShownNodes);
    });
  }
  return experiment;
}

/// The findings of a quorum, as a list.
std::string quorum_findings(Experiment experiment) {
  auto* const points = std::get_if<std::vector<QuorumPoint>>(&experiment.points);
  if (points == nullptr) return "";
  std::erase_if(*points, [](const QuorumPoint& point) {
    return point.nodes != 1 && point.nodes != kShownNodes;
  });
  std::string out = "\n";
  for (const std::string& line : findings(experiment)) {
    out += fmt::format("- {}\n", markdown_text(line));
  }
  return out;
}

/// "2 × CPU NAME, redis 7.0.15, lockbench 0.1.0 (05a4e27, Release), 2026-11-21": where the figures
/// come from.
std::string origin(const Result& result) {
  const Environment& machine = result.environment;
  std::vector<std::string> words;
  if (machine.cores > 0) words.push_back(fmt::format("{} × {}", machine.cores, machine.cpu));
  for (const auto& [name, server] : machine.servers) {
    words.push_back(fmt::format("{} {}", name, server.version));
  }
  words.push_back(fmt::format("lockbench {} ({}, {})", result.lockbench.version,
                              result.lockbench.commit, result.lockbench.build_type));
  words.push_back(result.started_at.substr(0, 10));
  const std::string line = fmt::format("{}", fmt::join(words, ", "));
  return fmt::format("\n{}.\n", markdown_text(printable(line)));
}

/// Whether a network was added to all its runs.
bool is_far(const Result& result) { return workload_number(result, "rtt").value_or(0) > 0; }

void add(NamedTables& tables, const Result& result, const KnownFlaws& flaws) {
  for (const TitledTable& table : load_tables(result, flaws)) {
    if (table.load.empty()) continue;
    tables.emplace(table.load + (is_far(result) ? "-far" : ""),
                   to_markdown(shown(table.table), {}) + origin(result));
  }
  if (result.hazards && !result.hazards->empty()) {
    tables.emplace("hazards", hazard_markdown(*result.hazards) + origin(result));
  }
  if (result.experiment) {
    const Experiment points = for_a_page(*result.experiment);
    tables.emplace(result.experiment->name(), to_markdown(narrowed_points(points), {}) +
                                                  quorum_findings(points) + origin(result));
  }
}

}  // namespace

NamedTables reference_tables(const std::vector<Result>& results, const KnownFlaws& flaws) {
  NamedTables tables;
  Result near;  // the named loads without a network, whichever file they are from
  for (const Result& result : results) {
    add(tables, result, flaws);
    if (is_far(result)) continue;
    std::copy_if(result.runs.begin(), result.runs.end(), std::back_inserter(near.runs),
                 [](const Run& run) { return !run.load.name.empty(); });
  }
  std::string said;
  for (const std::string& line : conclusions(near, flaws)) {
    said += fmt::format("- {}\n", markdown_text(line));
  }
  if (!said.empty()) tables.emplace("conclusions", said);
  return tables;
}

tl::expected<std::string, std::string> with_tables(std::string_view page,
                                                   const NamedTables& tables) {
  std::string out;
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = page.find(kBegin, at);
    if (begin == std::string_view::npos) return out.append(page.substr(at));
    const auto line =
        std::count(page.begin(), page.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1;
    const std::size_t name_at = begin + kBegin.size();
    const std::size_t name_end = page.find(kBeginEnd, name_at);
    const std::size_t end = page.find(kEnd, name_at);
    if (name_end == std::string_view::npos || end == std::string_view::npos || end < name_end) {
      return tl::unexpected(fmt::format("line {}: this table has no {}", line, kEnd));
    }
    const std::string_view name = page.substr(name_at, name_end - name_at);
    const auto table = tables.find(name);
    if (table == tables.end()) {
      std::vector<std::string_view> known;
      for (const auto& [one, text] : tables) known.push_back(one);
      return tl::unexpected(fmt::format("line {}: there is no reference table \"{}\"; there are {}",
                                        line, printable(name), fmt::join(known, ", ")));
    }
    out.append(page.substr(at, name_end + kBeginEnd.size() - at));
    out += "\n\n" + table->second + "\n";
    at = end;
  }
}

}  // namespace lockbench::results
