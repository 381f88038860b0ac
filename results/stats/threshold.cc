#include "results/stats/threshold.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "results/stats/figures.h"
#include "results/tables/text.h"
#include "results/tables/units.h"

namespace lockbench::results {
namespace {

constexpr std::size_t kSuggestions = 5;

/// Two-character operators first: "<=" begins with "<".
constexpr std::array<std::pair<std::string_view, Comparison>, 6> kComparisons{{
    {"<=", Comparison::less_equal},
    {">=", Comparison::greater_equal},
    {"==", Comparison::equal},
    {"!=", Comparison::not_equal},
    {"<", Comparison::less},
    {">", Comparison::greater},
}};

constexpr std::array<std::pair<std::string_view, double>, 7> kUnits{{
    {"", 1},
    {"ns", 1e-9},
    {"us", 1e-6},
    {"ms", 1e-3},
    {"s", 1},
    {"m", 60},
    {"h", 3600},
}};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Figures that contain the text come first ("p99", "acquire"), then those that differ least.
std::vector<std::string> close_figures(std::string_view text, const std::vector<Figure>& known) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const Figure& figure : known) {
    // What is twice as long was not meant to be this.
    if (text.size() > 2 * figure.path.size()) continue;
    const bool contains = !text.empty() && figure.path.find(text) != std::string::npos;
    ranked.emplace_back(contains ? 0 : edit_distance(text, figure.path), figure.path);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kSuggestions, ranked.size()); ++i) {
    names.push_back(ranked[i].second);
  }
  return names;
}

tl::expected<std::string, std::string> parse_figure(std::string_view text) {
  const std::vector<Figure> known = figures(Run{});
  const bool found = std::any_of(known.begin(), known.end(),
                                 [text](const Figure& figure) { return figure.path == text; });
  if (!found) {
    const std::vector<std::string> close = close_figures(text, known);
    return tl::unexpected(
        fmt::format("no such figure '{}'{}{}", text,
                    close.empty() ? "" : "; close ones: ", fmt::join(close, ", ")));
  }
  return std::string(text);
}

tl::expected<double, std::string> parse_bound(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) {
    return tl::unexpected(fmt::format("'{}' is not a number", text));
  }
  const auto unit_at = static_cast<std::size_t>(end - text.data());
  const std::string_view unit = trimmed(text.substr(unit_at));
  for (const auto& [name, seconds] : kUnits) {
    if (unit == name) {
      return number * seconds;
    }
  }
  return tl::unexpected(fmt::format("no such unit '{}': ns, us, ms, s, m, h or none", unit));
}

tl::expected<Threshold, std::string> threshold_of(std::string_view text) {
  const std::size_t at = text.find_first_of("<>=!");
  const std::string_view rest = text.substr(std::min(at, text.size()));
  const auto* const found =
      std::find_if(kComparisons.begin(), kComparisons.end(),
                   [rest](const auto& candidate) { return rest.starts_with(candidate.first); });
  if (found == kComparisons.end()) {
    return tl::unexpected(std::string("an operator is missing: one of < <= > >= == !="));
  }
  auto name = parse_figure(trimmed(text.substr(0, at)));
  if (!name) {
    return tl::unexpected(std::move(name.error()));
  }
  const auto bound = parse_bound(trimmed(rest.substr(found->first.size())));
  if (!bound) {
    return tl::unexpected(bound.error());
  }
  return Threshold{std::string(text), std::move(*name), found->second, *bound};
}

/// What `parse` makes of a text of bounded length; an error quotes it.
template <class Expression>
tl::expected<Expression, std::string> parsed(
    std::string_view what, std::string_view text,
    tl::expected<Expression, std::string> (&parse)(std::string_view)) {
  constexpr std::size_t kMaxLength = 200;
  if (text.size() > kMaxLength) {
    return tl::unexpected(fmt::format("{} longer than {} characters",
                                      what.empty() ? "expression" : "threshold", kMaxLength));
  }
  return parse(text).map_error([&](const std::string& error) {
    return printable(fmt::format("{}'{}': {}", what, text, error));
  });
}

bool holds(double measured, Comparison comparison, double bound) {
  switch (comparison) {
    case Comparison::less:
      return measured < bound;
    case Comparison::less_equal:
      return measured <= bound;
    case Comparison::greater:
      return measured > bound;
    case Comparison::greater_equal:
      return measured >= bound;
    case Comparison::equal:
      return measured == bound;
    case Comparison::not_equal:
      return measured != bound;
  }
  return false;
}

/// As a threshold, but for the sign and the percentage.
tl::expected<Regression, std::string> regression_of(std::string_view text) {
  const auto wrong_form = tl::unexpected(std::string(
      "wanted is FIGURE>+NUMBER or FIGURE<-NUMBER with %, ns, us, ms, s, m, h or none"));
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string_view::npos) return wrong_form;
  const bool more = text[at] == '>';
  std::string_view number = trimmed(text.substr(at + 1));
  if (!number.starts_with(more ? '+' : '-')) return wrong_form;
  number = trimmed(number.substr(1));
  const bool is_share = number.ends_with('%');
  if (is_share) number = trimmed(number.substr(0, number.size() - 1));
  const auto figure = parse_figure(trimmed(text.substr(0, at)));
  if (!figure) return tl::unexpected(figure.error());
  const auto bound = parse_bound(number);
  if (!bound) return tl::unexpected(bound.error());
  if (!(*bound >= 0)) return wrong_form;
  return Regression{std::string(text), *figure, more, is_share, is_share ? *bound / 100 : *bound};
}

}  // namespace

tl::expected<Threshold, std::string> parse_threshold(std::string_view text) {
  return parsed("threshold ", text, threshold_of);
}

tl::expected<Regression, std::string> parse_regression(std::string_view text) {
  return parsed("", text, regression_of);
}

ThresholdOutcome evaluate(const Threshold& threshold, const Run& run) {
  const Figure figure = find_figure(run, threshold.figure);
  if (!figure.value) return {{}, fmt::format("{} was not measured", threshold.figure), true};
  const bool fits = holds(*figure.value, threshold.comparison, threshold.bound);
  // A lower bound shows only that a figure is large.
  if (fits && (!figure.at_least || threshold.wants_more())) return {figure.value, ""};
  const Unit unit = compared_figure(threshold.figure).unit;
  return {figure.value,
          fmt::format("{} is {}{}", threshold.figure, figure.at_least ? "at least " : "",
                      human(*figure.value, unit)),
          fits || (figure.at_least && threshold.wants_more())};
}

}  // namespace lockbench::results
