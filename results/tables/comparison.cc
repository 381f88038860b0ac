#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "results/tables/show.h"

namespace lockbench::results {
namespace {

/// "+12.3 %", "×41", "-8 µs".
std::string human_change(double change, const Difference& difference) {
  if (!std::isfinite(change)) return "–";
  if (!difference.relative) return (change > 0 ? "+" : "") + human(change, difference.unit);
  constexpr double kLargestPercentage = 9.995;
  // With few repetitions the end of an interval can be far off.
  constexpr double kLargestFactor = 1000;
  if (change > kLargestFactor) return fmt::format("> ×{}", human_number(kLargestFactor));
  if (change > kLargestPercentage) return fmt::format("×{}", human_number(1 + change));
  return fmt::format("{:+.1f} %", 100 * change);
}

std::string human_interval(const Difference& difference) {
  if (!difference.low || !difference.high) return "–";
  return fmt::format("{} … {}", human_change(*difference.low, difference),
                     human_change(*difference.high, difference));
}

std::string name(const std::string& text) {
  constexpr std::size_t kLongest = 60;
  return clip(printable(text), kLongest);
}

nlohmann::ordered_json finite_or_null(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

nlohmann::ordered_json object(const Difference& difference) {
  return {{"strategy", difference.strategy},       {"figure", difference.figure},
          {"a", finite_or_null(difference.a)},     {"b", finite_or_null(difference.b)},
          {"relative", difference.relative},       {"change", finite_or_null(difference.change)},
          {"low", finite_or_null(difference.low)}, {"high", finite_or_null(difference.high)},
          {"p", finite_or_null(difference.p)},     {"finding", to_string(difference.finding)}};
}

void add_names(const std::vector<std::string>& strategies, std::string_view what, Block& block) {
  if (strategies.empty()) return;
  block.lines.emplace_back(fmt::format("{}{}", what, fmt::join(each_of(strategies, name), ", ")));
}

std::string why_not_kept(const Gate& gate, const Difference& one) {
  switch (gate.outcome) {
    case Gate::Outcome::kept:
      break;
    case Gate::Outcome::not_measured:
      return fmt::format("{} of {} was not measured in B", one.figure, name(one.strategy));
    case Gate::Outcome::regression:
      return fmt::format("{} is {}: {} after {}, {} ({})", name(one.strategy),
                         to_string(one.finding), human(one.b, one.unit), human(one.a, one.unit),
                         human_change(one.change, one), human_interval(one));
    case Gate::Outcome::not_excluded:
      if (!gate.undecided.empty()) {
        return fmt::format("not decided for {}: {}", name(one.strategy), gate.undecided);
      }
      if (!gate.detectable) {
        return fmt::format("cannot be excluded for {}: not measured in A", name(one.strategy));
      }
      return fmt::format(
          "cannot be excluded for {}: {} ({}); these repetitions show {} with a power of 80 %",
          name(one.strategy), human_change(one.change, one), human_interval(one),
          human_change(*gate.detectable, one));
  }
  return {};
}

}  // namespace

Block comparison_block(const ResultComparison& comparison) {
  const auto figure = [](double Difference::*side, bool Difference::*at_least) {
    return [side, at_least](const Difference& one) -> Cell {
      return {one.*side, Tone::plain, (one.*at_least ? "≥ " : "") + human(one.*side, one.unit)};
    };
  };
  const std::string interval = fmt::format("{:g} % interval", 100 * comparison.confidence);
  const auto only_in_csv = [](const char* key, auto member) -> Field<Difference> {
    return {{.key = key, .name = key, .unit = Unit::number, .show = Show::if_asked}, member};
  };
  const std::vector<Field<Difference>> fields{
      {{"strategy", "", "strategy"}, [](const auto& one) { return name(one.strategy); }},
      {{"figure", "", "figure"}, &Difference::figure},
      {{"a", "", "A", Unit::number, 1}, figure(&Difference::a, &Difference::a_at_least)},
      {{"b", "", "B", Unit::number, 2}, figure(&Difference::b, &Difference::b_at_least)},
      only_in_csv("relative", &Difference::relative),
      {{"change", "", "change", Unit::number},
       [](const auto& one) -> Cell {
         return {one.change, Tone::plain, human_change(one.change, one)};
       }},
      only_in_csv("low", &Difference::low),
      only_in_csv("high", &Difference::high),
      only_in_csv("p", &Difference::p),
      {{"interval", "", interval, Unit::number, 3, Show::always, false},
       [](const auto& one) -> Cell { return human_interval(one); }},
      {{"finding", "", "finding"}, [](const auto& one) { return to_string(one.finding); }},
  };
  Block block{.table = table_of(fields, comparison.differences)};
  add_names(comparison.only_in_a, "only in A: ", block);
  add_names(comparison.only_in_b, "only in B: ", block);
  for (const auto& [path, strategies] : comparison.unmeasured) {
    add_names(strategies, fmt::format("{} is in neither result: ", path), block);
  }
  block.lines.insert(block.lines.end(), comparison.notes.begin(), comparison.notes.end());
  return block;
}

std::string why_not_kept(const Gate& gate, const ResultComparison& comparison) {
  if (gate.outcome == Gate::Outcome::kept) return "";
  return gate.place ? why_not_kept(gate, comparison.differences[*gate.place])
                    : fmt::format("{} was measured neither in A nor in B", gate.bound.figure);
}

std::vector<std::string> gate_lines(const ResultComparison& comparison) {
  std::vector<std::string> lines;
  for (const Gate& gate : comparison.gates) {
    if (gate.outcome == Gate::Outcome::kept) continue;
    lines.push_back(fmt::format("{}: {}", gate.bound.text, why_not_kept(gate, comparison)));
  }
  return lines;
}

std::string to_json(const ResultComparison& comparison) {
  nlohmann::ordered_json document = {{"confidence", comparison.confidence},
                                     {"differences", nlohmann::ordered_json::array()},
                                     {"gates", nlohmann::ordered_json::array()},
                                     {"only_in_a", comparison.only_in_a},
                                     {"only_in_b", comparison.only_in_b},
                                     {"unmeasured", comparison.unmeasured},
                                     {"notes", comparison.notes}};
  for (const Difference& one : comparison.differences) {
    document["differences"].push_back(object(one));
  }
  for (const Gate& gate : comparison.gates) {
    document["gates"].push_back(
        {{"expression", gate.bound.text},
         {"strategy", gate.strategy},
         {"outcome", gate.undecided.empty() ? to_string(gate.outcome) : "not decided"},
         {"detectable", finite_or_null(gate.detectable)}});
  }
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockbench::results
