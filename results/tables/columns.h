#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/file/model.h"

namespace lockbench::results {

/// For each strategy, in a word, what it is known to fall to. From the caller, as results knows no
/// strategies.
using KnownFlaws = std::map<std::string, std::string, std::less<>>;

enum class Unit { text, seconds, number, count };
enum class Merge { median, sum, max };
enum class Show { always, where_any, file_only };
enum class Tone { plain, good, bad, doubtful };

/// The runs of one strategy that share a row; in a CSV file one run has a row of its own.
struct Row {
  std::vector<const Run*> runs;  ///< at least one; they belong to the result
  std::string flaw;
};

/// One column of the table, of Markdown and of CSV: the only list of columns there is.
struct Column {
  std::string_view group = {}, name = {};  ///< the two lines of its title: "acquire", "p99"
  std::string_view header = {};            ///< in CSV, with its unit; empty: not there
  std::string_view figure = {};            ///< see figures.h; empty for texts
  Unit unit = Unit::text;
  Merge merge = Merge::median;
  Show show = Show::always;
  int rank = 0;  ///< the highest is the first to go for lack of room
  std::string (*text)(const Row& row) = nullptr;  ///< of a text
  Tone (*tone)(const Row& row) = nullptr;         ///< likewise
  std::string_view figure_max = {};               ///< the figure lies between `figure` and this
  bool alarming = false;                          ///< anything above 0 is bad
  bool with_spread = false;
  bool needs_audit = false;  ///< nothing is known where no write was accepted
};

struct Cell {
  std::string text;  ///< printable, human units
  Tone tone = Tone::plain;
  bool counted = false;  ///< something happened: a count above 0
};

/// A result laid out for people: rows[r][c] belongs to columns[c].
struct Sheet {
  std::vector<const Column*> columns;
  std::vector<std::vector<Cell>> rows;
};

std::span<const Column> all_columns();

/// In one line: "acquire p99"; "fair-", "ness" is "fairness".
std::string title(const Column& column);

/// The column's figure over a row's repetitions; nothing where no run has it.
std::optional<double> merged(const Row& row, const Column& column);

/// One row a strategy, in the order of their first runs; columns that say nothing are left out.
Sheet make_sheet(const Result& result, const KnownFlaws& flaws);

/// What has to be said about a result beside its figures, one line each: interrupted, invalid runs
/// and why, failures, skipped strategies, what repetitions were merged.
std::vector<std::string> notes(const Result& result);

}  // namespace lockbench::results
