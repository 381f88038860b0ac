#include "results/tables/reference_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "results/file/provenance.h"
#include "results/tables/experiment_sheet.h"
#include "results/tables/hazard_sheet.h"
#include "results/tables/markdown.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

constexpr std::string_view kBegin = "<!-- reference: ", kBeginEnd = " -->", kEnd = "<!-- end -->";

/// The columns of the comparison, by title: more do not fit on a page.
constexpr std::array<std::string_view, 10> kCompared{
    "strategy",    "sections /s", "acquire p50", "acquire p99",  "acquire max",
    "handoff p50", "cmds/sect.",  "fairness",    "lost updates", "falls to"};

/// Columns of experiments for which a page has no room; `lockbench show` has them.
constexpr std::array<std::string_view, 12> kLeftOut{
    "clients", "rounds/grant", "split votes", "validity p50", "validity min", "acquire max",
    "threads", "commands/s",   "baseline",    "slip p50",     "margin p50",   "failures"};

/// Without those columns, and without what is the same in every row, which readers need not see.
TextSheet narrowed(const TextSheet& sheet) {
  TextSheet narrow;
  std::vector<std::size_t> kept;
  for (std::size_t c = 0; c < sheet.titles.size(); ++c) {
    std::set<std::string> values;
    for (const auto& row : sheet.rows) values.insert(row[c]);
    const bool left_out =
        std::find(kLeftOut.begin(), kLeftOut.end(), sheet.titles[c]) != kLeftOut.end();
    if (c == 0 || ((values.size() > 1 || sheet.rows.size() < 2) && !left_out)) kept.push_back(c);
  }
  for (const std::size_t c : kept) narrow.titles.push_back(sheet.titles[c]);
  for (const auto& row : sheet.rows) {
    auto& cells = narrow.rows.emplace_back();
    for (const std::size_t c : kept) cells.push_back(row[c]);
  }
  return narrow;
}

/// The quorum whose faults a page shows; of the others it shows what they cost.
constexpr std::uint64_t kShownNodes = 5;

bool struck(const QuorumPoint& point) { return point.down + point.frozen + point.slow > 0; }

/// A page shows what a quorum costs a client that is alone: contention hides it.
Experiment for_a_page(Experiment experiment) {
  if (auto* points = std::get_if<std::vector<QuorumPoint>>(&experiment.points)) {
    std::erase_if(*points, [](const QuorumPoint& point) {
      return point.clients > 1 || (struck(point) && point.nodes != kShownNodes);
    });
  }
  return experiment;
}

/// What a quorum's figures say, as a list.
std::string read_out(Experiment experiment) {
  auto* const points = std::get_if<std::vector<QuorumPoint>>(&experiment.points);
  if (points == nullptr) return "";
  std::erase_if(*points, [](const QuorumPoint& point) {
    return point.nodes != 1 && point.nodes != kShownNodes;
  });
  std::string out = "\n";
  for (const std::string& line : readings(experiment)) {
    out += fmt::format("- {}\n", markdown_text(line));
  }
  return out;
}

TextSheet compared(const Result& result, const KnownFlaws& flaws) {
  const Sheet sheet = make_sheet(result, flaws);
  TextSheet page;
  for (std::size_t c = 0; c < sheet.columns.size(); ++c) {
    const std::string name = title(*sheet.columns[c]);
    if (std::find(kCompared.begin(), kCompared.end(), name) == kCompared.end()) continue;
    page.titles.push_back(name);
    page.rows.resize(sheet.rows.size());
    for (std::size_t r = 0; r < sheet.rows.size(); ++r) {
      page.rows[r].push_back(markdown_text(sheet.rows[r][c].text));
    }
  }
  return page;
}

std::string origin(const Result& result, const std::string& load) {
  return fmt::format("\n{}{}.\n", load.empty() ? "" : load + "; ",
                     markdown_text(printable(origin_of(result))));
}

void add(NamedTables& tables, const Result& result, const KnownFlaws& flaws) {
  if (!result.runs.empty()) {
    tables.emplace(has_contention(result) ? "comparison" : "alone",
                   to_markdown(compared(result, flaws)) + origin(result, load_of(result)));
  }
  if (result.hazards && !result.hazards->empty()) {
    tables.emplace("hazards", to_matrix_markdown(*result.hazards) + origin(result, ""));
  }
  if (result.experiment) {
    const Experiment shown = for_a_page(*result.experiment);
    tables.emplace(result.experiment->name(),
                   to_markdown(narrowed(sheet_of(shown))) + read_out(shown) + origin(result, ""));
  }
}

}  // namespace

NamedTables reference_tables(const std::vector<Result>& results, const KnownFlaws& flaws) {
  NamedTables tables;
  for (const Result& result : results) add(tables, result, flaws);
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
