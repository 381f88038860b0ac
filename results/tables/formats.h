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
  /// How to see the columns for which there is no room.
  std::string_view remedy = "--columns all shows them";
};

/// For a terminal. A table that is too wide leaves out columns by rank; the last line names them,
/// with their counts.
std::string to_text(Block block, const TextStyle& style);

/// `text` as the style can show it.
std::string styled(std::string_view text, const TextStyle& style);
/// Like styled(), in lines that fit the width.
std::string folded(std::string_view text, const TextStyle& style);
/// `text` with the escape codes of the tone, if the style has colors.
std::string colored(const std::string& text, Tone tone, const TextStyle& style);

/// A heading, a GitHub table, and the lines as a list below.
std::string to_markdown(const Block& block);

/// Elements of a page. All texts are escaped. The rows and the length of a text are bounded; a
/// table says how many rows it leaves out.
std::string to_html(const Table& table);
std::string to_html(const std::vector<Sentence>& sentences);
/// `text` in at most `most` characters, escaped and without control characters.
std::string html_text(std::string_view text, std::size_t most = 300);

/// RFC 4180: a header of keys, then the values in base units; an empty field if there is no value.
std::string to_csv(const Table& table);

/// Percentile output of HdrHistogram (https://github.com/HdrHistogram/HdrHistogram), `.hgrm`, for
/// its plotters: five lines for each halving of the distance to 100 %, in µs. A value is the upper
/// end of its bucket, too high by at most twice the distribution's relative error.
std::string to_hgrm(const Distribution& distribution);

/// One file for each run and time (acquire, hold, release, handoff), by name:
/// STRATEGY.REPETITION.acquire.hgrm. With several loads, the load follows the strategy.
std::map<std::string, std::string> hgrm_files(const Result& result);

}  // namespace lockbench::results
