#include "results/tables/show.h"

#include <algorithm>

#include "results/file/json.h"
#include "results/file/loads.h"
#include "results/tables/observed.h"

namespace lockbench::results {
namespace {

enum class Kind { runs, hazards, capacity, observed };

Kind kind_of(const Result& result) {
  if (!result.runs.empty()) return Kind::runs;
  if (result.hazards) return Kind::hazards;
  if (result.observed) return Kind::observed;
  return result.capacity ? Kind::capacity : Kind::runs;
}

/// What people see.
Table main_table(const Result& result, const KnownFlaws& flaws) {
  const Kind kind = kind_of(result);
  if (kind == Kind::observed) return observed_table(result);
  return kind == Kind::capacity ? capacity_table(*result.capacity) : run_table(result, flaws);
}

/// What CSV shows: one row for each thing that was measured.
Table complete_table(const Result& result, const KnownFlaws& flaws) {
  const Kind kind = kind_of(result);
  if (kind == Kind::hazards) return hazard_table(*result.hazards);
  if (kind == Kind::capacity) return rate_table(*result.capacity);
  return kind == Kind::observed ? observed_table(result) : table_of_each_run(result, flaws);
}

std::vector<Sentence> sentences_of(const Result& result, const KnownFlaws& flaws) {
  std::vector<Sentence> lines = advice(result, flaws);
  for (Sentence& note : notes(result)) lines.push_back(std::move(note));
  return lines;
}

/// For a terminal: as many strategies as fit beside the scenarios' names.
MatrixStyle matrix_for(const Result& result, const Look& look) {
  if (!result.hazards || look.format == Format::markdown) return {};
  constexpr std::size_t kColumn = 12;  // the widest outcome with its marks, and the gap
  std::size_t names = 0;
  for (const Hazard& hazard : *result.hazards) {
    names = std::max(names, display_width(hazard.scenario));
  }
  const std::size_t width = look.style.width.value_or(static_cast<std::size_t>(-1));
  return {.columns = (width - std::min(names, width)) / kColumn, .numbered = true};
}

}  // namespace

std::vector<Block> blocks_of(const Result& result, const KnownFlaws& flaws,
                             const MatrixStyle& matrix) {
  const Kind kind = kind_of(result);
  std::vector<Block> blocks;
  if (kind == Kind::hazards) {
    blocks = hazard_blocks(*result.hazards, matrix);
    // A list of numbers is for terminals, which show no single plays.
    if (matrix.numbered) blocks.push_back({.lines = hazard_failures(*result.hazards)});
    blocks.push_back({.lines = notes(result)});
    return blocks;
  }
  if (has_several_loads(result)) {
    blocks = load_tables(result, flaws);
    blocks.push_back({.lines = advice(result, flaws)});
    blocks.push_back({.lines = notes(result)});
    return blocks;
  }
  Block& main = blocks.emplace_back();
  main.table = shown(main_table(result, flaws));
  if (main.table.rows.empty()) {
    const std::string what = kind == Kind::runs       ? "no runs"
                             : kind == Kind::observed ? "no locks were seen"
                                                      : "no points";
    main = {.lines = {{Tone::doubtful, what}}};
  }
  for (Sentence& one : sentences_of(result, flaws)) main.lines.push_back(std::move(one));
  // With many runs, the ranks that stand out are among the notes.
  if (kind == Kind::runs && result.runs.size() == 1 && !result.runs.front().ranks.empty()) {
    blocks.push_back({.table = shown(rank_table(result))});
  }
  if (kind != Kind::capacity) return blocks;
  for (const Capacity& capacity : *result.capacity) {
    const std::vector<std::string> found = findings(capacity);
    blocks.push_back({.title = capacity.strategy, .lines = {found.begin(), found.end()}});
  }
  return blocks;
}

std::string written(const Block& block, const Look& look) {
  return look.format == Format::markdown ? to_markdown(block) : to_text(block, look.style);
}

tl::expected<std::string, std::string> render(const Block& block, const Look& look) {
  const bool csv = look.format == Format::csv;
  Block picked = block;
  if (!look.columns.empty()) {
    auto asked = chosen(block.table, look.columns);
    if (!asked) return tl::unexpected(asked.error());
    picked.table = *std::move(asked);
  } else {
    picked.table = csv ? csv_columns(block.table) : shown(block.table);
  }
  return csv ? to_csv(picked.table) : written(picked, look);
}

tl::expected<std::string, std::string> render(const Result& result, const KnownFlaws& flaws,
                                              const Look& look) {
  if (look.format == Format::json) {
    if (look.columns.empty()) return to_json(result);
    return tl::unexpected(std::string("JSON has no columns to choose: use --format csv"));
  }
  // A matrix has no columns to choose from: its cells as a list have.
  const bool list = kind_of(result) == Kind::hazards && !look.columns.empty();
  if (look.format == Format::csv || list) {
    return render({.table = complete_table(result, flaws)}, look);
  }
  if (!look.columns.empty()) {
    return render({.table = main_table(result, flaws), .lines = sentences_of(result, flaws)}, look);
  }
  std::string text;
  for (const Block& block : blocks_of(result, flaws, matrix_for(result, look))) {
    const std::string part = written(block, look);
    text += (text.empty() || part.empty() ? "" : "\n") + part;
  }
  return text;
}

}  // namespace lockbench::results
