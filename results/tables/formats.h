#pragma once

#include "results/file/model.h"
#include "results/tables/table.h"

namespace lockbench::results {

// The output formats of a table, and of a distribution. JSON is the result file's own format.

/// How text for a terminal looks.
struct TextStyle {
  bool color = false;                ///< ANSI colors
  bool ascii = false;                ///< for a locale without UTF-8: "us" for "µs"
  std::optional<std::size_t> width;  ///< of the terminal, in columns; nothing: unlimited
  /// What shows the columns for which there is no room.
  std::string_view remedy = "--columns all shows them";
};

/// For a terminal. A table that does not fit into the width leaves out columns by rank; a last line
/// names them and what was counted in them.
std::string to_text(Block block, const TextStyle& style);

/// `text` as the style can show it.
std::string styled(std::string_view text, const TextStyle& style);
/// The same, in lines that fit the width.
std::string folded(std::string_view text, const TextStyle& style);
/// With the escape codes of the tone, if the style has colors.
std::string colored(const std::string& text, Tone tone, const TextStyle& style);

/// A heading, a GitHub table, and the lines as a list below.
std::string to_markdown(const Block& block);

/// `text` with all characters escaped that Markdown would take for markup.
std::string markdown_text(std::string_view text);

/// Elements of a page, whatever the texts hold: nothing of them is markup. The rows and the length
/// of a text are bounded; a table says how many rows it leaves out.
std::string to_html(const Table& table);
std::string to_html(const std::vector<Sentence>& sentences);
/// `text` in at most so many characters, without control characters and markup.
std::string html_text(std::string_view text, std::size_t most = 300);

/// RFC 4180: a header of keys, then the values in base units; an empty field where there is none.
std::string to_csv(const Table& table);

/// Percentile output of HdrHistogram (https://github.com/HdrHistogram/HdrHistogram), `.hgrm`, which
/// its plotters read: five lines for each halving of the distance to 100 %, in µs. A value is the
/// upper end of its bucket, which is too high by at most twice the distribution's relative error.
std::string to_hgrm(const Distribution& distribution);

/// One for each run and time (acquire, hold, release, handoff), by the names of their files:
/// STRATEGY.REPETITION.acquire.hgrm.
std::map<std::string, std::string> hgrm_files(const Result& result);

}  // namespace lockbench::results
