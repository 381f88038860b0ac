#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "results/file/model.h"
#include "results/tables/table.h"

namespace lockbench::results::report {

/// What a report shows, as plain data: page.js draws these blocks and knows nothing of locks. Texts
/// may hold anything; they are bounded and made inert when the page is written.

/// One sentence, and whether it is good news.
struct Remark {
  Tone tone = Tone::plain;
  std::string text;
};
using Remarks = std::vector<Remark>;

/// The first column is a row's name.
struct Table {
  std::string caption;
  std::vector<std::string> titles;
  std::vector<std::vector<Cell>> rows;
};

/// `percentile`: logarithmic in 1 / (1 - p), which is what the axis holds: 100 is 99 %.
enum class Scale { linear, log, percentile };
enum class Measure { number, seconds, share };

struct Axis {
  std::string title;
  Measure measure = Measure::number;
  Scale scale = Scale::linear;
};

using Point = std::pair<double, double>;

struct Line {
  std::string name;
  std::string strategy;  ///< by which the reader picks it; empty: always there
  std::vector<Point> points;
  bool dashed = false;
  bool dots_only = false;
};

/// A stretch of the x axis, or a point of it.
struct Mark {
  std::string label;
  std::string strategy;  ///< as in Line
  double from = 0;
  std::optional<double> until;
};

struct LineChart {
  std::string title, note;
  Axis x, y;
  std::vector<Line> lines;
  std::vector<Mark> marks;
  Table table;  ///< the same figures, for screen readers
};

/// One row for each category; not a number: no bar.
struct BarChart {
  enum class Form { bars, stacked, dots };
  struct Series {
    std::string name;
    std::vector<double> values;
  };

  std::string title, note;
  Form form = Form::bars;
  Axis x;
  std::vector<std::string> categories;
  std::vector<Series> series;
};

struct Code {
  std::string caption, text;
};

/// Scenarios by strategies. Each play can be unfolded.
struct HazardMatrix {
  struct Play {
    std::size_t scenario = 0, strategy = 0;  ///< indices of the lists below
    std::string word;                        ///< that the cell shows
    Tone tone = Tone::plain;
    std::string outcome, reason;
    std::vector<std::pair<std::string, std::string>> evidence;
    std::vector<HazardEvent> timeline;
  };

  std::vector<std::string> scenarios, strategies;
  std::vector<Play> plays;
  std::vector<Remark> legend;
};

using Block = std::variant<Remarks, Table, LineChart, BarChart, Code, HazardMatrix>;

struct Section {
  std::string title, intro;
  std::vector<Block> blocks;
};

/// A strategy with lines to pick. Those with the lowest styles are told apart best.
struct Picked {
  std::string strategy;
  bool shown = true;  ///< at first
};

/// One result file.
struct Part {
  std::string title, subtitle;
  Remarks headline;
  std::vector<Picked> strategies;
  std::vector<Section> sections;
};

struct View {
  std::string title;
  std::vector<Section> overview;  ///< of several results
  std::vector<Part> parts;
};

}  // namespace lockbench::results::report
