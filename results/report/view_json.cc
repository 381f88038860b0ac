#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "results/report/limits.h"
#include "results/report/report.h"
#include "results/tables/text.h"

namespace lockbench::results::report {
namespace {

using Json = nlohmann::ordered_json;

std::string text(std::string_view given, std::size_t most = kMostColumns) {
  // A longer text would be cut anyway.
  return clip(printable(given.substr(0, 4 * most)), most);
}

Json texts(const std::vector<std::string>& given) {
  Json array = Json::array();
  for (const std::string& one : given) array.push_back(text(one));
  return array;
}

/// Five digits: more are not visible and would make the page larger.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0;
  const double scale = std::pow(10.0, 4 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::round(value * scale) / scale;
  return std::isfinite(rounded) ? Json(rounded) : Json(value);
}

/// In the order of the enum.
template <class Enum, std::size_t N>
std::string_view name_of(Enum value, const std::array<std::string_view, N>& names) {
  return names[static_cast<std::size_t>(value)];
}

std::string_view name_of(Tone tone) {
  return name_of(tone, std::array<std::string_view, 4>{"plain", "good", "bad", "doubtful"});
}

std::string_view name_of(Measure measure) {
  return name_of(measure, std::array<std::string_view, 3>{"number", "seconds", "share"});
}

std::string_view name_of(Scale scale) {
  return name_of(scale, std::array<std::string_view, 3>{"linear", "log", "percentile"});
}

std::string_view name_of(BarChart::Form form) {
  return name_of(form, std::array<std::string_view, 3>{"bars", "stacked", "dots"});
}

Json write(const Axis& axis) {
  return {{"title", text(axis.title)},
          {"measure", name_of(axis.measure)},
          {"scale", name_of(axis.scale)}};
}

Json write(const Remarks& remarks) {
  Json lines = Json::array();
  for (const Remark& remark : remarks) {
    if (lines.size() == kMostRemarks) {
      lines.push_back({{"tone", "plain"}, {"text", "… and more, in the file"}});
      break;
    }
    lines.push_back({{"tone", name_of(remark.tone)}, {"text", text(remark.text)}});
  }
  return {{"kind", "remarks"}, {"lines", lines}};
}

/// A cell without a tone is its text.
Json write(const Table& table) {
  Json rows = Json::array();
  for (const auto& cells : table.rows) {
    if (rows.size() == kMostRows) break;
    Json row = Json::array();
    for (const Cell& cell : cells) {
      row.push_back(cell.tone == Tone::plain ? Json(text(cell.text))
                                             : Json::array({text(cell.text), name_of(cell.tone)}));
    }
    rows.push_back(std::move(row));
  }
  Json out{{"kind", "table"}, {"caption", text(table.caption)}, {"titles", texts(table.titles)}};
  out["rows"] = std::move(rows);
  out["left_out"] = table.rows.size() - std::min(table.rows.size(), kMostRows);
  return out;
}

Json write(const LineChart& chart) {
  Json lines = Json::array(), marks = Json::array();
  for (const Line& line : chart.lines) {
    Json points = Json::array();
    for (const auto& [x, y] : line.points) points.push_back({number(x), number(y)});
    lines.push_back({{"name", text(line.name)},
                     {"strategy", text(line.strategy)},
                     {"dashed", line.dashed},
                     {"dots", line.dots_only},
                     {"points", std::move(points)}});
  }
  for (const Mark& mark : chart.marks) {
    marks.push_back({{"label", text(mark.label)},
                     {"strategy", text(mark.strategy)},
                     {"from", number(mark.from)},
                     {"until", mark.until ? number(*mark.until) : Json()}});
  }
  Json out{{"kind", "lines"}, {"title", text(chart.title)}, {"note", text(chart.note)}};
  out["x"] = write(chart.x);
  out["y"] = write(chart.y);
  out["lines"] = std::move(lines);
  out["marks"] = std::move(marks);
  out["table"] = chart.table.rows.empty() ? Json() : write(chart.table);
  return out;
}

Json write(const BarChart& chart) {
  Json series = Json::array();
  for (const BarChart::Series& one : chart.series) {
    Json values = Json::array();
    for (const double value : one.values) values.push_back(number(value));
    series.push_back({{"name", text(one.name)}, {"values", std::move(values)}});
  }
  Json out{{"kind", "bars"}, {"title", text(chart.title)}, {"note", text(chart.note)}};
  out["form"] = name_of(chart.form);
  out["x"] = write(chart.x);
  out["categories"] = texts(chart.categories);
  out["series"] = std::move(series);
  return out;
}

Json write(const Code& code) {
  return {{"kind", "code"}, {"caption", text(code.caption)}, {"text", text(code.text, kMostCode)}};
}

Json write(const HazardMatrix::Play& play) {
  Json evidence = Json::array(), timeline = Json::array();
  for (const auto& [name, value] : play.evidence) evidence.push_back({text(name), text(value)});
  for (const HazardEvent& event : play.timeline) {
    timeline.push_back({number(event.t), text(event.who), text(event.what)});
  }
  Json out{{"scenario", play.scenario}, {"strategy", play.strategy}, {"word", text(play.word)}};
  out["tone"] = name_of(play.tone);
  out["outcome"] = text(play.outcome);
  out["reason"] = text(play.reason);
  out["evidence"] = std::move(evidence);
  out["timeline"] = std::move(timeline);
  return out;
}

Json write(const HazardMatrix& matrix) {
  Json plays = Json::array();
  for (const HazardMatrix::Play& play : matrix.plays) plays.push_back(write(play));
  Json out{{"kind", "matrix"}};
  out["scenarios"] = texts(matrix.scenarios);
  out["strategies"] = texts(matrix.strategies);
  out["plays"] = std::move(plays);
  out["legend"] = write(matrix.legend);
  return out;
}

Json write(const std::vector<Section>& sections) {
  Json array = Json::array();
  for (const Section& section : sections) {
    Json blocks = Json::array();
    for (const Block& block : section.blocks) {
      blocks.push_back(std::visit([](const auto& one) { return write(one); }, block));
    }
    array.push_back({{"title", text(section.title)}, {"intro", text(section.intro)}});
    array.back()["blocks"] = std::move(blocks);
  }
  return array;
}

Json write(const Part& part) {
  Json strategies = Json::array();
  for (const Picked& picked : part.strategies) {
    strategies.push_back({{"name", text(picked.strategy)}, {"shown", picked.shown}});
  }
  Json out{{"title", text(part.title)}, {"subtitle", text(part.subtitle)}};
  out["headline"] = write(part.headline);
  out["strategies"] = std::move(strategies);
  out["sections"] = write(part.sections);
  return out;
}

}  // namespace

std::string to_view_json(const View& view) {
  Json parts = Json::array();
  for (const Part& part : view.parts) parts.push_back(write(part));
  Json document{{"title", text(view.title)}};
  document["overview"] = write(view.overview);
  document["parts"] = std::move(parts);
  const std::string plain = document.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string inert;
  inert.reserve(plain.size());
  // These characters occur only in strings, where an escape means the same.
  for (const char c : plain) {
    switch (c) {
      case '<':
        inert += "\\u003c";
        break;
      case '>':
        inert += "\\u003e";
        break;
      case '&':
        inert += "\\u0026";
        break;
      default:
        inert += c;
    }
  }
  return inert;
}

}  // namespace lockbench::results::report
