#include "results/tables/show.h"

#include <fmt/format.h>

#include <algorithm>

#include "results/file/json.h"
#include "results/file/loads.h"
#include "results/tables/experiments.h"
#include "results/tables/loads.h"
#include "results/tables/observed.h"
#include "results/tables/runs.h"
#include "results/tables/text.h"

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

std::vector<std::string> texts_of(const std::vector<Sentence>& sentences) {
  std::vector<std::string> texts;
  texts.reserve(sentences.size());
  for (const Sentence& one : sentences) texts.push_back(one.text);
  return texts;
}

void append(std::vector<Sentence>& to, const std::vector<Sentence>& lines) {
  to.insert(to.end(), lines.begin(), lines.end());
}

std::vector<Block> hazards_of(const Result& result, const MatrixStyle& matrix) {
  std::vector<Block> blocks = hazard_blocks(*result.hazards, matrix);
  // A list of numbers is for terminals, which show no single plays.
  if (matrix.numbered) blocks.push_back({.lines = hazard_failures(*result.hazards)});
  blocks.push_back({.lines = notes(result)});
  return blocks;
}

/// A table for each load, and what follows from them.
std::vector<Block> loads_of(const Result& result, const KnownFlaws& flaws) {
  std::vector<Block> blocks;
  for (TitledTable& one : load_tables(result, flaws)) {
    blocks.push_back({.title = std::move(one.title), .table = std::move(one.table)});
  }
  blocks.push_back({.lines = advice(result, flaws)});
  blocks.push_back({.lines = notes(result)});
  return blocks;
}

/// For a terminal: as many strategies as fit beside the scenarios' names.
MatrixStyle matrix_for(const Result& result, const Look& look) {
  if (look.format == Format::markdown) return {};
  constexpr std::size_t kColumn = 12;  // the widest outcome with its marks, and the gap
  std::size_t names = 0;
  for (const Hazard& hazard : *result.hazards) {
    names = std::max(names, display_width(hazard.scenario));
  }
  const std::size_t width = look.style.width.value_or(static_cast<std::size_t>(-1));
  return {.columns = (width - std::min(names, width)) / kColumn, .numbered = true};
}

Table csv_columns(const Table& table) {
  std::vector<std::size_t> places;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].in_csv) places.push_back(c);
  }
  return with_columns(table, places);
}

}  // namespace

Table complete_table(const Result& result, const KnownFlaws& flaws) {
  switch (kind_of(result)) {
    case Kind::hazards:
      return hazard_table(*result.hazards);
    case Kind::capacity:
      return step_table(*result.capacity);
    case Kind::observed:
      return observed_table(result);
    case Kind::runs:
      break;
  }
  return table_of_each_run(result, flaws);
}

std::vector<Block> blocks_of(const Result& result, const KnownFlaws& flaws,
                             const MatrixStyle& matrix) {
  const Kind kind = kind_of(result);
  if (kind == Kind::hazards) return hazards_of(result, matrix);
  if (kind == Kind::runs && has_several_loads(result)) return loads_of(result, flaws);
  std::vector<Block> blocks{{.table = shown(main_table(result, flaws))}};
  if (blocks[0].table.rows.empty()) {
    const std::string what = kind == Kind::runs       ? "no runs"
                             : kind == Kind::observed ? "no locks were seen"
                                                      : "no points";
    blocks[0] = {.lines = {{Tone::doubtful, what}}};
  }
  append(blocks[0].lines, advice(result, flaws));
  append(blocks[0].lines, notes(result));
  // With many runs, the ranks that stand out are among the notes.
  if (kind == Kind::runs && result.runs.size() == 1 && !result.runs.front().ranks.empty()) {
    blocks.push_back({.table = shown(rank_table(result))});
  }
  if (kind != Kind::capacity) return blocks;
  for (const Capacity& capacity : *result.capacity) {
    Block& block = blocks.emplace_back();
    block.title = capacity.strategy;
    for (const std::string& found : findings(capacity)) block.lines.push_back({Tone::plain, found});
  }
  return blocks;
}

std::string written(const Block& block, const Look& look) {
  const bool markdown = look.format == Format::markdown;
  std::string text;
  if (!block.title.empty()) {
    text += fmt::format("{}{}\n\n", markdown ? "## " : "", styled(block.title, look.style));
  }
  const std::vector<std::string> lines = texts_of(block.lines);
  return text +
         (markdown ? to_markdown(block.table, lines) : to_text(block.table, lines, look.style));
}

tl::expected<std::string, std::string> render(const Table& table,
                                              const std::vector<std::string>& notes,
                                              const Look& look) {
  Table picked;
  if (!look.columns.empty()) {
    auto asked = chosen(table, look.columns);
    if (!asked) return tl::unexpected(asked.error());
    picked = *std::move(asked);
  } else {
    picked = look.format == Format::csv ? csv_columns(table) : shown(table);
  }
  if (look.format == Format::csv) return to_csv(picked);
  return look.format == Format::markdown ? to_markdown(picked, notes)
                                         : to_text(std::move(picked), notes, look.style);
}

tl::expected<std::string, std::string> render(const Result& result, const KnownFlaws& flaws,
                                              const Look& look) {
  if (look.format == Format::json) {
    if (look.columns.empty()) return to_json(result);
    return tl::unexpected(std::string("JSON has no columns to choose: use --format csv"));
  }
  const Kind kind = kind_of(result);
  // A matrix has no columns to choose from: its cells as a list have.
  if (look.format == Format::csv || (kind == Kind::hazards && !look.columns.empty())) {
    return render(complete_table(result, flaws), {}, look);
  }
  if (!look.columns.empty()) {
    std::vector<Sentence> lines = advice(result, flaws);
    append(lines, notes(result));
    return render(main_table(result, flaws), texts_of(lines), look);
  }
  std::string text;
  const auto matrix = kind == Kind::hazards ? matrix_for(result, look) : MatrixStyle{};
  for (const Block& block : blocks_of(result, flaws, matrix)) {
    const std::string part = written(block, look);
    text += (text.empty() || part.empty() ? "" : "\n") + part;
  }
  return text;
}

}  // namespace lockbench::results
