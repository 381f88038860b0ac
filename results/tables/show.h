#pragma once

#include "results/stats/comparison.h"
#include "results/tables/formats.h"
#include "results/tables/hazards.h"
#include "results/tables/runs.h"

namespace lockbench::results {

enum class Format { table, json, csv, markdown };

struct Look {
  Format format = Format::table;
  TextStyle style{};                   ///< of the format `table`
  std::vector<std::string> columns{};  ///< keys, or "all"; empty: the usual ones
};

/// A result of any command as stdout shows it. The error names an unknown column.
tl::expected<std::string, std::string> render(const Result& result, const KnownFlaws& flaws,
                                              const Look& look);

/// The same in parts, which a page shows as well: the tables that people see, and what follows from
/// them.
std::vector<Block> blocks_of(const Result& result, const KnownFlaws& flaws,
                             const MatrixStyle& matrix = {});
std::string written(const Block& block, const Look& look);

/// A table of the usual columns, or of those that were asked for, with the lines below it; as CSV,
/// the table alone.
tl::expected<std::string, std::string> render(const Block& block, const Look& look);

/// What follows from a result's figures, in a sentence each; violations come first.
std::vector<Sentence> advice(const Result& result, const KnownFlaws& flaws);

/// What to know about a result beyond its figures, one line each: interrupted, invalid runs and
/// why, faults, failures, skipped strategies, how repetitions were merged.
std::vector<Sentence> notes(const Result& result);

// A comparison

/// One row for each figure of each strategy. The lines tell which strategies only one side has, and
/// what limits the findings.
Block comparison_block(const ResultComparison& comparison);

/// One line for each gate that is not kept; of those that cannot be excluded, with the change that
/// could have been found.
std::vector<std::string> gate_lines(const ResultComparison& comparison);

/// Durations in seconds, null where there is nothing.
std::string to_json(const ResultComparison& comparison);

}  // namespace lockbench::results
