#pragma once

#include "results/stats/comparison.h"
#include "results/tables/formats.h"
#include "results/tables/hazards.h"
#include "results/tables/runs.h"

namespace lockbench::results {

/// `junit` only of commands that judge something: see to_junit().
enum class Format { table, json, csv, markdown, junit };

struct Look {
  Format format = Format::table;
  TextStyle style{};                   ///< of the format `table`
  std::vector<std::string> columns{};  ///< keys, or "all"; empty: the usual ones
};

/// A result of any command as stdout shows it. The error names an unknown column.
tl::expected<std::string, std::string> render(const Result& result, const KnownFlaws& flaws,
                                              const Look& look);

/// The same in parts, also for a page: the tables that people see, and the conclusions from them.
std::vector<Block> blocks_of(const Result& result, const KnownFlaws& flaws,
                             const MatrixStyle& matrix = {});

/// A table of the usual columns, or of those asked for, with the lines below it; as CSV, the table
/// alone.
tl::expected<std::string, std::string> render(const Block& block, const Look& look);

/// The conclusions from a result's figures, in a sentence each; violations come first.
std::vector<Sentence> advice(const Result& result, const KnownFlaws& flaws);

/// Notes on a result in addition to its figures, one line each: interrupted, invalid runs and why,
/// faults, failures, skipped strategies, how repetitions were merged.
std::vector<Sentence> notes(const Result& result);

// A comparison

/// One row for each figure of each strategy. The lines name the strategies that only one side has,
/// and the limits of the findings.
Block comparison_block(const ResultComparison& comparison);

/// In one line, without the gate's own text; empty if it is kept.
std::string why_not_kept(const Gate& gate, const ResultComparison& comparison);

/// One line for each gate that is not kept. If a regression cannot be excluded, the line says which
/// change could have been detected.
std::vector<std::string> gate_lines(const ResultComparison& comparison);

/// Durations in seconds; null for what was not measured.
std::string to_json(const ResultComparison& comparison);

// What a command has judged, as CI servers read it.

/// A threshold, a gate, the audit of a run, or a hazard's play.
struct Check {
  enum class Outcome { passed, failed, undecided, skipped };
  std::string group, name;  ///< what was judged, and by what
  Outcome outcome = Outcome::passed;
  std::string why{};  ///< in one line, unless it passed
};

/// The audit of each run, each play of a hazard, and what was skipped.
std::vector<Check> checks_of(const Result& result);
/// Each gate; `strict`: a regression that cannot be excluded fails it.
std::vector<Check> checks_of(const ResultComparison& comparison, bool strict);

/// JUnit's XML, one suite: a failed check is a failure, an undecided one an error.
std::string to_junit(std::string_view suite, const std::vector<Check>& checks);

}  // namespace lockbench::results
