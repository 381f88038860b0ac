#include "results/tables/comparison_sheet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "results/tables/csv.h"
#include "results/tables/text.h"
#include "results/tables/units.h"

namespace lockbench::results {
namespace {

constexpr std::size_t kLongestName = 60;
constexpr std::string_view kNothing = "–";

std::string human(double value, FigureKind kind) {
  if (!std::isfinite(value)) return std::string(kNothing);
  switch (kind) {
    case FigureKind::seconds:
      return human_seconds(value);
    case FigureKind::count:
      return human_count(value);
    case FigureKind::number:
      break;
  }
  return human_number(value);
}

/// "+12.3 %", "×41", "-8 µs".
std::string human_change(double change, const Difference& difference) {
  if (!std::isfinite(change)) return std::string(kNothing);
  if (!difference.relative) {
    return (change > 0 ? "+" : "") + human(change, difference.kind);
  }
  constexpr double kLargestPercentage = 9.995;
  // The end of an interval that few repetitions leave wide open.
  constexpr double kLargestFactor = 1000;
  if (change > kLargestFactor) return fmt::format("> ×{}", human_number(kLargestFactor));
  if (change > kLargestPercentage) return fmt::format("×{}", human_number(1 + change));
  return fmt::format("{:+.1f} %", 100 * change);
}

std::string human_interval(const Difference& difference) {
  if (!difference.low || !difference.high) return std::string(kNothing);
  return fmt::format("{} … {}", human_change(*difference.low, difference),
                     human_change(*difference.high, difference));
}

std::string name(const std::string& text) { return clip(printable(text), kLongestName); }

std::string plain(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

nlohmann::ordered_json number(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

nlohmann::ordered_json object(const Difference& difference) {
  return {{"strategy", difference.strategy}, {"figure", difference.figure},
          {"a", number(difference.a)},       {"b", number(difference.b)},
          {"relative", difference.relative}, {"change", number(difference.change)},
          {"low", number(difference.low)},   {"high", number(difference.high)},
          {"p", number(difference.p)},       {"finding", to_string(difference.finding)}};
}

void add_names(const std::vector<std::string>& strategies, std::string_view what,
               std::vector<std::string>& lines) {
  if (strategies.empty()) return;
  std::vector<std::string> names;
  names.reserve(strategies.size());
  for (const std::string& strategy : strategies) names.push_back(name(strategy));
  lines.push_back(fmt::format("{}{}", what, fmt::join(names, ", ")));
}

}  // namespace

TextSheet sheet_of(const ResultComparison& comparison) {
  TextSheet sheet;
  sheet.titles = {"strategy", "figure", "A",
                  "B",        "change", fmt::format("{:g} % interval", 100 * comparison.confidence),
                  "finding"};
  for (const Difference& one : comparison.differences) {
    sheet.rows.push_back({name(one.strategy), one.figure, human(one.a, one.kind),
                          human(one.b, one.kind), human_change(one.change, one),
                          human_interval(one), std::string(to_string(one.finding))});
  }
  return sheet;
}

std::vector<std::string> readings(const ResultComparison& comparison) {
  std::vector<std::string> lines;
  add_names(comparison.only_in_a, "only in A: ", lines);
  add_names(comparison.only_in_b, "only in B: ", lines);
  for (const auto& [figure, strategies] : comparison.unmeasured) {
    add_names(strategies, fmt::format("{} was measured in neither: ", figure), lines);
  }
  lines.insert(lines.end(), comparison.notes.begin(), comparison.notes.end());
  return lines;
}

std::string to_csv(const ResultComparison& comparison) {
  std::string out = "strategy,figure,a,b,relative,change,low,high,p,finding\r\n";
  for (const Difference& one : comparison.differences) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{}\r\n", csv_field(name(one.strategy)),
                       one.figure, plain(one.a), plain(one.b), one.relative, plain(one.change),
                       plain(one.low), plain(one.high), plain(one.p), to_string(one.finding));
  }
  return out;
}

std::string to_json(const ResultComparison& comparison) {
  nlohmann::ordered_json document = {
      {"confidence", comparison.confidence}, {"differences", nlohmann::ordered_json::array()},
      {"only_in_a", comparison.only_in_a},   {"only_in_b", comparison.only_in_b},
      {"unmeasured", comparison.unmeasured}, {"notes", comparison.notes}};
  for (const Difference& one : comparison.differences) {
    document["differences"].push_back(object(one));
  }
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockbench::results
